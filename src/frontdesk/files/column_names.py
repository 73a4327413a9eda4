"""Names of columns: how they are compared, and which field a name means."""

import re

from frontdesk.eligibility.fields import FIELDS

METADATA_PREFIX = "metadata."


def fold_name(name: str) -> str:
    """A column's name without letter case, spaces, underscores and hyphens, which senders vary."""
    return re.sub(r"[\s_\-]+", "", name).lower()


def field_named(name: str) -> str | None:
    """The field (or `metadata.key`) that a column's name means; None if there is none."""
    name = name.strip()
    if name[: len(METADATA_PREFIX)].lower() == METADATA_PREFIX and len(name) > len(METADATA_PREFIX):
        return METADATA_PREFIX + name[len(METADATA_PREFIX) :]
    return _BY_FOLDED.get(fold_name(name))


_BY_FOLDED = {fold_name(name): name for name in FIELDS}
