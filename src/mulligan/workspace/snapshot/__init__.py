"""Take snapshots and checkpoints of the disk, and compare them."""
