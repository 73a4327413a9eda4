"""What a suggestion says of a file."""

import io
from typing import Any

from frontdesk.mapping.suggest.suggestion import suggest_mapping


def suggested(content: bytes | str, **options: Any) -> dict[str, Any]:
    raw = content.encode() if isinstance(content, str) else content
    return suggest_mapping(io.BytesIO(raw), today="2026-11-22", **options)


def answered(found: dict[str, Any]) -> dict[str, Any]:
    """The suggested mapping after a person has said of every status that it says nothing about
    access.
    """
    mapping: dict[str, Any] = found["mapping"]
    return mapping | {"questions": dict.fromkeys(mapping.get("questions", {}), "unrelated")}


def rules_of(content: bytes | str) -> dict[str, Any]:
    """What the mapping says of each field: a rule."""
    mapping = suggested(content)["mapping"]
    plain = {field: {"column": name} for name, field in mapping.get("columns", {}).items()}
    rules: dict[str, Any] = plain | mapping.get("fields", {})
    return rules
