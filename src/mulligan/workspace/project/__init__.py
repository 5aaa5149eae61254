"""Where projects and their data are, and the lock on one."""
