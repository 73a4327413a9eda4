"""Parses a PATCH of a plan: an untrusted JSON object becomes the changes, with ALL faults."""

from collections.abc import Mapping

from frontdesk.errors import Fault, unknown_faults
from frontdesk.plans.model import PlanPatch
from frontdesk.text import Rejected, parse_text

NAME_LENGTH, DESCRIPTION_LENGTH = 255, 2000

# The fields that may change: the maximum length, and whether null or blank clears the field.
CHANGEABLE = {
    "name": (NAME_LENGTH, False),
    "description": (DESCRIPTION_LENGTH, True),
    "external_id": (NAME_LENGTH, False),
}
READ_ONLY = ("id", "type", "active", "created_at", "provider_group", "queue_info")


def parse_plan_patch(body: Mapping[str, object], *, strict: bool = False) -> PlanPatch:
    """The changes of a PATCH (docs/interface.md, Change a plan). `strict`: unknown fields are faults. Never raises.

    A missing field stays as it is; null clears `description` and is a fault elsewhere.
    """
    changes: dict[str, str | None] = {}
    faults: list[Fault] = []
    for name in CHANGEABLE:
        if name in body:
            try:
                changes[name] = _parse_text(name, body[name])
            except Rejected as rejected:
                faults.append(Fault(name, rejected.code, rejected.message))
    unknown = tuple(name for name in body if name not in CHANGEABLE and name not in READ_ONLY)
    if strict:
        faults += unknown_faults(unknown)
    return PlanPatch(
        changes=changes,
        echoed={name: body[name] for name in READ_ONLY if name in body},
        faults=tuple(faults),
        ignored=() if strict else unknown,
    )


def _parse_text(name: str, value: object) -> str | None:
    limit, clearable = CHANGEABLE[name]
    text = None if value is None else parse_text(value, limit=limit) or None
    if text is None and not clearable:
        raise Rejected("required", "must not be null or blank")
    return text
