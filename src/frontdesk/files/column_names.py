"""Names of columns: how they are compared, and which field a name means."""

import re

from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.values import METADATA_KEY_LENGTH

METADATA_PREFIX = "metadata."
COLUMN_NAME = re.compile(r"[^\s_\-]")  # what a name has that is left when it is folded
METADATA_FIELD = re.compile(rf"metadata[.]\S(?:[^\r\n]{{0,{METADATA_KEY_LENGTH - 2}}}\S)?")


def fold_name(name: str) -> str:
    """A column's name without letter case, spaces, underscores and hyphens, which senders vary."""
    return re.sub(r"[\s_\-]+", "", name).lower()


def field_named(name: str) -> str | None:
    """The field (or `metadata.key`) that a column's name means; None if there is none."""
    name = name.strip()
    if name[: len(METADATA_PREFIX)].lower() == METADATA_PREFIX and len(name) > len(METADATA_PREFIX):
        return METADATA_PREFIX + name[len(METADATA_PREFIX) :]
    return _BY_FOLDED.get(fold_name(name))


def mappable_field(name: str) -> str | None:
    """The field (or `metadata.key`, with a key that a member may have) that a mapping means; None if there is none."""
    known = field_named(name)
    return known if known in FIELDS or METADATA_FIELD.fullmatch(known or "") else None


_BY_FOLDED = {fold_name(name): name for name in FIELDS}
