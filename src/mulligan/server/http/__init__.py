"""HTTP: connections, who may ask, limits, JSON and errors."""
