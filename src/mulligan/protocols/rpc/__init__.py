"""JSON lines on stdio: pi's commands, and ours."""
