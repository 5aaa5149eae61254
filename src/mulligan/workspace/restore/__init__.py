"""Restore, undo and redo: plan, apply, finish, recover."""
