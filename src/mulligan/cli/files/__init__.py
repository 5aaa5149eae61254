"""Commands on checkpoints and files."""
