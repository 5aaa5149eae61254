"""Objects: bytes kept under their SHA-256, in a few append-only packs with an index.

This room touches only the `objects` directory. What is always true: a pack is only ever appended
to, and an object is listed in the index only after its bytes are safely on the disk. The index is
derived: it can be rebuilt from the packs. Writers and the garbage collector are serialised by the
caller, who holds the project's lock; readers need no lock.
"""
