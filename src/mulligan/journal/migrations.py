"""The formats of the journal, one step after another. Forward only."""

JOURNAL = (
    """
    CREATE TABLE checkpoints (
      seq INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      tree BLOB NOT NULL,
      guarded BLOB NOT NULL,
      coverage BLOB NOT NULL,
      complete INTEGER NOT NULL,
      kind TEXT NOT NULL,
      message TEXT NOT NULL,
      created_at TEXT NOT NULL,
      files INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      session TEXT,
      entry TEXT
    );
    CREATE TABLE operations (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('planned', 'applied', 'abandoned')),
      changed INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      session TEXT,
      undoes INTEGER REFERENCES operations(number),
      target TEXT,
      before TEXT,
      after TEXT,
      plan_tree BLOB,
      plan_guarded BLOB,
      summary TEXT NOT NULL DEFAULT '{}'
    );
    CREATE INDEX operations_changed ON operations(number) WHERE changed AND state = 'applied';
    CREATE INDEX operations_planned ON operations(number) WHERE state = 'planned';
    CREATE TABLE forced (path BLOB PRIMARY KEY) WITHOUT ROWID;
    """,
)
