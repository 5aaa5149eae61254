"""Locate projects and their data, and lock one."""
