"""Reading a PATCH of a plan: an untrusted JSON object in, the changes and ALL faults out; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk.errors import Fault, unknown_faults
from frontdesk.text import Rejected, parse_text

NAME_LENGTH, DESCRIPTION_LENGTH = 255, 2000

# The three fields that may change: longest text, and whether null or blank clears it.
CHANGEABLE = {
    "name": (NAME_LENGTH, False),
    "description": (DESCRIPTION_LENGTH, True),
    "external_id": (NAME_LENGTH, False),
}
READ_ONLY = ("id", "type", "active", "created_at", "provider_group", "queue_info")


@dataclass(frozen=True, slots=True)
class PlanPatch:
    """`echoed` are read-only fields that were sent along; whether they differ, only the plan can tell."""

    changes: dict[str, str | None]
    echoed: dict[str, object]
    faults: tuple[Fault, ...]
    ignored: tuple[str, ...]


def parse_plan_patch(body: Mapping[str, object], *, strict: bool = False) -> PlanPatch:
    """docs/interface.md, Plans: absent keeps; null clears `description` and is a fault elsewhere. Never raises."""
    changes: dict[str, str | None] = {}
    faults: list[Fault] = []
    for name in CHANGEABLE:
        if name in body:
            try:
                changes[name] = parse_plan_text(name, body[name])
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


def parse_plan_text(name: str, value: object) -> str | None:
    """One of the changeable fields. Raises Rejected."""
    limit, clearable = CHANGEABLE[name]
    text = None if value is None else parse_text(value, limit=limit) or None
    if text is None and not clearable:
        raise Rejected("required", "must not be null or blank")
    return text
