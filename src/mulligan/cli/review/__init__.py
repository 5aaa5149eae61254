"""Commands of review, and the review on the terminal."""
