"""Store objects by their SHA-256, in append-only packs with an index.

This room touches only the `objects` directory. Always true: packs are only appended to, and an
object is indexed only after its bytes are synced. The index is derived and can be rebuilt from the
packs. Writers and the garbage collector run under the project's lock; readers need no lock.
"""
