"""What the operations of a workspace return: frozen values."""
