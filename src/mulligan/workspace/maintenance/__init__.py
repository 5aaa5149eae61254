"""Maintain the store: verify, gc, forget, doctor, disk usage."""
