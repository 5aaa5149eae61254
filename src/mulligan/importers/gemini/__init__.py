"""Read the chats of Gemini CLI."""
