"""Migrate the journal's schema, forward only; the index of a step is its format."""

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
      entry TEXT,
      max_file_size INTEGER NOT NULL DEFAULT 0
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
    """
    CREATE TABLE sessions (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      agent TEXT NOT NULL DEFAULT '',
      title TEXT NOT NULL DEFAULT '',
      model TEXT,
      mode TEXT,
      directory TEXT,
      status TEXT NOT NULL DEFAULT 'starting'
        CHECK (status IN ('starting', 'running', 'waiting_input', 'paused', 'stopped')),
      process TEXT,
      leaf INTEGER,
      memory TEXT NOT NULL DEFAULT '',
      auto_approve_commands INTEGER NOT NULL DEFAULT 0,
      auto_approve_sensitive_edits INTEGER NOT NULL DEFAULT 0,
      sensitive_file_patterns TEXT NOT NULL DEFAULT '{}',
      forked_from TEXT,
      source TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE INDEX sessions_newest ON sessions(updated_at);
    CREATE INDEX sessions_status ON sessions(status, updated_at);

    CREATE TABLE entries (
      number INTEGER PRIMARY KEY,  -- session << 32 | seq
      session INTEGER NOT NULL REFERENCES sessions(number) ON DELETE CASCADE,
      seq INTEGER NOT NULL,
      id TEXT NOT NULL,
      parent INTEGER,              -- the seq of another entry of the session
      branch INTEGER NOT NULL,     -- the seq of the first entry of an unforked stretch
      type TEXT NOT NULL CHECK (type IN ('user_input', 'assistant_output', 'tool_call',
        'tool_result', 'file_edit', 'compact_marker', 'system_message', 'branch_summary',
        'step_snapshot', 'unrevert_point', 'ui_event')),
      created_at TEXT NOT NULL,
      content TEXT NOT NULL DEFAULT '',
      data TEXT,
      model TEXT,
      checkpoint TEXT REFERENCES checkpoints(id) ON DELETE SET NULL,
      plan_item TEXT,
      is_compacted INTEGER NOT NULL DEFAULT 0,
      off_path INTEGER NOT NULL DEFAULT 0,
      CHECK (number = (session << 32) | seq),
      UNIQUE (session, id)
    );
    CREATE INDEX entries_branch ON entries(session, branch);
    CREATE INDEX entries_type ON entries(session, type);
    CREATE INDEX entries_checkpoint ON entries(checkpoint) WHERE checkpoint IS NOT NULL;
    CREATE INDEX entries_plan_item ON entries(plan_item) WHERE plan_item IS NOT NULL;
    CREATE INDEX entries_call ON entries(session, data ->> 'call') WHERE type = 'tool_call';

    CREATE TABLE labels (
      entry INTEGER PRIMARY KEY REFERENCES entries(number) ON DELETE CASCADE,
      label TEXT NOT NULL
    );

    CREATE TABLE tool_events (
      entry INTEGER PRIMARY KEY REFERENCES entries(number) ON DELETE CASCADE,
      session INTEGER NOT NULL REFERENCES sessions(number) ON DELETE CASCADE,
      agent TEXT NOT NULL,
      tool TEXT NOT NULL,
      created_at TEXT NOT NULL,
      success INTEGER,             -- null while it is pending or running
      duration REAL,               -- milliseconds
      error_type TEXT
    );
    CREATE INDEX tool_events_session ON tool_events(session);
    CREATE INDEX tool_events_time ON tool_events(created_at);

    -- The trees of each session after an operation: the newest row of a session counts.
    CREATE TABLE views (
      session INTEGER NOT NULL REFERENCES sessions(number) ON DELETE CASCADE,
      operation INTEGER NOT NULL REFERENCES operations(number),
      round INTEGER NOT NULL,
      approved BLOB,               -- the tree without pending work; null if nothing is pending
      written BLOB,                -- the tree without other authors' edits within pending work
      base BLOB,                   -- the tree without the open turn's work; null without a turn
      PRIMARY KEY (session, operation)
    ) WITHOUT ROWID;
    CREATE INDEX views_operation ON views(operation);
    ALTER TABLE operations ADD COLUMN head TEXT;    -- git's HEAD commit
    ALTER TABLE operations ADD COLUMN intent TEXT;  -- its effects on the sessions' views
    CREATE INDEX checkpoints_session ON checkpoints(session) WHERE session IS NOT NULL;
    CREATE INDEX operations_session ON operations(session) WHERE session IS NOT NULL;

    -- The hash of the content that an agent last wrote to a path.
    CREATE TABLE ledger (
      session INTEGER NOT NULL REFERENCES sessions(number) ON DELETE CASCADE,
      path BLOB NOT NULL,
      content BLOB,                -- null where it deleted the file
      created_at TEXT NOT NULL,
      is_open INTEGER NOT NULL,    -- while the agent's tool is still writing it
      PRIMARY KEY (session, path)
    ) WITHOUT ROWID;

    -- The last recorded hook events, with their replies.
    CREATE TABLE hook_events (
      number INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      reply TEXT NOT NULL
    );

    -- A numbered log of all changes, for clients that follow the journal.
    CREATE TABLE events (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      session INTEGER,
      subject INTEGER,
      deleted TEXT                 -- the id of a deleted session
    );
    CREATE TRIGGER entry_added AFTER INSERT ON entries BEGIN
      INSERT INTO events (kind, session, subject) VALUES ('entry', new.session, new.seq);
    END;
    CREATE TRIGGER entry_changed AFTER UPDATE ON entries BEGIN
      INSERT INTO events (kind, session, subject) VALUES ('entry_changed', new.session, new.seq);
    END;
    CREATE TRIGGER session_added AFTER INSERT ON sessions BEGIN
      INSERT INTO events (kind, session) VALUES ('session', new.number);
    END;
    CREATE TRIGGER session_changed AFTER UPDATE OF title, status, model, mode, leaf, memory,
      auto_approve_commands, auto_approve_sensitive_edits, sensitive_file_patterns ON sessions
    BEGIN
      INSERT INTO events (kind, session) VALUES ('session_changed', new.number);
    END;
    CREATE TRIGGER session_deleted AFTER DELETE ON sessions BEGIN
      INSERT INTO events (kind, session, deleted) VALUES ('session_deleted', old.number, old.id);
    END;
    CREATE TRIGGER operation_added AFTER INSERT ON operations BEGIN
      INSERT INTO events (kind, subject) VALUES ('operation', new.number);
    END;
    CREATE TRIGGER operation_changed AFTER UPDATE OF state ON operations BEGIN
      INSERT INTO events (kind, subject) VALUES ('operation_changed', new.number);
    END;
    """,
    """
    ALTER TABLE forced ADD COLUMN since INTEGER;
    UPDATE forced SET since = (SELECT coalesce(max(seq), 0) FROM checkpoints);
    """,
)
