"""Hooks: what agents call at each step of their work.

A hook must never block or break its agent: whatever goes wrong in here is written down and shown
later, and the agent goes on. Only where the user chose to be strict is it stopped. It is also on
the agent's way at every step, so nothing is imported that is not needed.
"""
