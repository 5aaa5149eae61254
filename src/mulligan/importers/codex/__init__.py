"""Read the rollouts of Codex."""
