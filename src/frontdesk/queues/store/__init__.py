"""The SQL of the encounter queue: `events` in and their state, `queue_rows` for a read, `snapshots`, `upkeep` of old rows."""
