"""Compare the disk with the stat cache, read what changed, build trees."""
