"""Invitations: the four rules, the message, what comes back of it. The types are in `model`."""

from frontdesk.invitations.store import (
    get_deliverability,
    get_template,
    hash_suppressions,
    list_invitations,
    list_suppressions,
    set_deliverability,
    suppress,
    unsuppress,
)

__all__ = [
    "get_deliverability",
    "get_template",
    "hash_suppressions",
    "list_invitations",
    "list_suppressions",
    "set_deliverability",
    "suppress",
    "unsuppress",
]
