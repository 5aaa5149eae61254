"""Exporters: a session of ours, written so that others can read it.

One file a format. This room is given values and gives text or bytes; it reads no journal and no
disk. What is always true: nothing that a session holds can break out of the format, be it text
that looks like markup, a fence, a name with a newline in it or bytes that are not UTF-8; and the
same session gives the same output.
"""
