"""Name the kinds of hook events; apart from `hook_events` to keep a hook's imports small."""

SESSION_STARTS = "session_starts"
PROMPT = "prompt"
CALL_BEGINS = "call_begins"
CALL_ENDS = "call_ends"
TURN_ENDS = "turn_ends"
SESSION_ENDS = "session_ends"
KINDS = (SESSION_STARTS, PROMPT, CALL_BEGINS, CALL_ENDS, TURN_ENDS, SESSION_ENDS)
