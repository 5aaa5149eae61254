"""Import other agents' logs and snapshots; export sessions."""
