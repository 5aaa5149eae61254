"""Hooks: the commands that agents run at each step of their work.

A hook must never block or break its agent: failures are logged, shown later by `doctor`, and the
agent goes on. Only with `strict` is a prompt refused. The agent waits for every hook, so a hook
imports as little as possible.
"""
