"""What is kept about a person: erased, exported, held, and pruned when it is old enough (docs/erasure.md)."""

from frontdesk.privacy.store import find_holds, has_pruned, last_pruning

__all__ = ["find_holds", "has_pruned", "last_pruning"]
