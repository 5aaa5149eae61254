"""Our own HTTP API, `/api/v1`: one module a subject."""
