"""Mulligan as an MCP server: tools, resources, plans."""
