"""What the text of a row means: a digest that stands at the beginning of each row's digest
(docs/decisions/0075).

A known row is not parsed again. So a row that was loaded before a field existed would leave that
field empty for ever, and a row that was read by an older rule would keep what that rule made of it.
Both make another digest here: then every row is new once.
"""

from collections.abc import Iterable
from hashlib import blake2b

import orjson

from frontdesk.eligibility.fields import FIELDS, Field

# Raise it when a rule may read the same text in another way: a value, the name of a column, a
# segment. When the code of a rule has changed, tests/files/test_row_meaning.py fails and says how
# to go on.
RULES_VERSION = 6
DIGEST_BYTES = 16


def row_meaning() -> bytes:
    """The digest of the field table and of the version of the rules."""
    described = [_described(field) for field in FIELDS.values()]
    return blake2b(orjson.dumps([RULES_VERSION, described]), digest_size=DIGEST_BYTES).digest()


def _described(field: Field) -> Iterable[object]:
    """All of the field that data can say; the code of its reader is covered by RULES_VERSION."""
    kind = field.kind
    is_converted = kind.from_text is not None
    return (
        *(field.name, field.required, field.unique),
        *(kind.schema, kind.length, kind.storage, kind.plain_length, is_converted),
    )
