"""Every schema of the interface, generated from the modules of `types`."""

from frontdesk.interface.schema import Schema, schemas_in
from frontdesk.interface.types import (
    access,
    callers,
    events,
    files,
    mapping_rules,
    mappings,
    member_writes,
    members,
    plans,
    problems,
)


def schemas() -> dict[str, Schema]:
    """The schemas by name, in the order of the document. Bodies stay open to unknown fields,
    because the service ignores them.
    """
    return schemas_in(
        plans,
        files,
        mappings,
        member_writes,
        members,
        callers,
        events,
        access,
        problems,
        mapping_rules,
    )
