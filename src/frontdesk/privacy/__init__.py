"""Personal data: erasure, export, legal holds, retention (docs/erasure.md)."""

from frontdesk.privacy.store import find_holds, has_pruned, last_pruning

__all__ = ["find_holds", "has_pruned", "last_pruning"]
