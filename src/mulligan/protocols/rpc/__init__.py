"""RPC: JSON lines on stdio, with pi's commands and our own."""
