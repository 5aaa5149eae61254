"""Commands that connect agents and programs."""
