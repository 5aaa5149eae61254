"""The decisions: trees, differences, hunks, and which operation an undo takes back.

Pure values and functions. Nothing here reads a file, a clock or a random number, so everything
here can be tested with plain data. Rooms above hand in what must be loaded as small functions.
"""
