"""Look after the store: verify, collect garbage, forget, and say what is wrong."""
