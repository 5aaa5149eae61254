"""YAAI's WebSocket requests."""
