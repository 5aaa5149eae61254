"""What can happen to an agent, by name. By itself, because hooks need no more than the names."""

from __future__ import annotations

from typing import Final

SESSION_STARTS: Final = "session_starts"
PROMPT: Final = "prompt"
CALL_BEGINS: Final = "call_begins"
CALL_ENDS: Final = "call_ends"
TURN_ENDS: Final = "turn_ends"
SESSION_ENDS: Final = "session_ends"
KINDS: Final = (SESSION_STARTS, PROMPT, CALL_BEGINS, CALL_ENDS, TURN_ENDS, SESSION_ENDS)
