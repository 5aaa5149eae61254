"""Write a session in formats that other programs and people read.

One module per format. Exporters convert values to text or bytes, and read neither the journal nor
the disk. Always true: no content of a session can break out of the format, be it markup, a fence,
a name with a newline, or bytes that are not UTF-8; and the same session gives the same output.
"""
