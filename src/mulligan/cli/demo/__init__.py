"""The sample project."""
