"""Suggests a mapping for a file with names of its own (docs/file-formats.md, Let a mapping be suggested)."""

from frontdesk.mapping.suggest.suggestion import serialize_suggestion, suggest_apart, suggest_mapping

__all__ = ["serialize_suggestion", "suggest_apart", "suggest_mapping"]
