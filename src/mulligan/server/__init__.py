"""The server: HTTP, live events and WebSocket over the same verbs that the command line calls.

Routes translate; they decide nothing. Async begins here: whatever touches a disk runs in a thread.
What is always true: it listens on loopback unless told otherwise, and refuses requests without the
token; what it acknowledged is in the journal; it can be killed at any moment.
"""
