"""Measures the wait estimate on past events: replays them, computes an estimate at each arrival,
compares it with the wait.

A file goes through `encounters_csv` into `columns`; `window` chooses its days, and `file_events`
makes its events, with the shifts of `shifts`. Stored events come from the database. `line` puts
events into the order in which they were known, with a question at each joining; `judge` asks it of
`replay`; `figures` adds up, `verdict` and `warnings` say what it means.
"""
