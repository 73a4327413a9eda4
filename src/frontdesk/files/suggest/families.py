"""The column that tells of which family a row is, where dependents stand without an address (docs/file-formats.md)."""

import re

from frontdesk.files.rules import FAMILY
from frontdesk.files.suggest.draft import MappingDraft

_OF_NUMBERS = {"id", "no", "nr", "num", "number", "ssn", "eid", "emplid", "#"}
_WORDS = re.compile("[a-z]+|#")
_ENOUGH, _CONFIDENCE = 0.8, 0.9


def add_family(draft: MappingDraft) -> None:
    """A column of numbers by which most rows without a zip code stand beside one with a zip code, and no number has two."""
    sample, at = draft.sample, draft.column_of("zipcode")
    homeless = [row for row in sample.rows if at is not None and not row[at].strip()]
    if at is None or not homeless:
        return
    for position, name in enumerate(sample.names):
        if _OF_NUMBERS.isdisjoint(_WORDS.findall(re.sub("([a-z])([A-Z])", r"\1 \2", name).casefold())):
            continue
        homes: dict[str, set[str]] = {}
        for row in sample.rows:
            if (number := row[position].strip()) and row[at].strip():
                homes.setdefault(number, set()).add(row[at].strip())
        found = sum(row[position].strip() in homes for row in homeless)
        if found >= _ENOUGH * len(homeless) and all(len(zips) == 1 for zips in homes.values()):
            draft.use(FAMILY, [position], _CONFIDENCE)
            return
