"""What is kept about a person: erased, exported, held, and pruned when it is old enough (docs/erasure.md)."""
