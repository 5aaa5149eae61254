"""AgentSmithy's endpoints."""
