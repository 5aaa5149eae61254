"""What the operations of a project return: frozen values."""
