"""The SQL of the encounter queue: `events` and what follows from them, `pools` for the estimate,
`snapshots`.
"""
