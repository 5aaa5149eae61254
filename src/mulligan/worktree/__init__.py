"""Read and change the user's files; no other package does either.

`scan` reads and remembers file states in the stat cache; `restore` writes. Always true:

1. Every path is opened from the project root one component at a time, without following links.
2. Nothing named `.git` is read into a tree or written.
3. Bytes are overwritten only after they were compared with the content that the plan expects.
"""
