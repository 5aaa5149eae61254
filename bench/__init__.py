"""The benchmark: the same trees and the same edits for Mulligan and for its peers."""
