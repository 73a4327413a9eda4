"""Rows about other coverages than the medical one: a file with a row for each coverage names a person several times."""

import re
from dataclasses import replace
from typing import Any

from frontdesk.files.suggest.names import COVERAGE_LINE, meanings
from frontdesk.files.suggest.sample import Sample

_MEDICAL = re.compile(r"\b(?:med|medical|health|hlt|hmo|ppo|pos|epo|hdhp|mm)\b")
_OTHER = re.compile(
    r"\b(?:den|dent|dental|vis|vision|eye|life|add|ad d|std|ltd|disability|fsa|hsa|dcfsa|hra|accident|critical|hospital|legal|pet"
    r"|eap|cancer|rx|drug|pharmacy|hearing|401k|retirement|commuter|voluntary|wellness|identity theft)\b"
)
_MOST_WORDS = 50


def other_lines(sample: Sample) -> tuple[dict[str, Any], Sample] | None:
    """A rule that leaves out the rows of other coverages, and the sample without them; None if the file has no such rows.

    Every word of the column must be known: another one may be medical.
    """
    for position, name in enumerate(sample.names):
        is_such = COVERAGE_LINE in meanings(name)
        words = {word.casefold() for word in sample.column(position)} if is_such else set()
        others = {word for word in words if not _MEDICAL.search(_plain(word)) and _OTHER.search(_plain(word))}
        medical = {word for word in words if _MEDICAL.search(_plain(word))}
        if medical and others and words == medical | others and len(others) <= _MOST_WORDS:
            rows = [row for row in sample.rows if row[position].strip().casefold() not in others]
            return {"column": name, "equals": sorted(others)}, replace(sample, rows=rows)
    return None


def _plain(word: str) -> str:
    return " ".join(re.findall("[a-z0-9]+", word))
