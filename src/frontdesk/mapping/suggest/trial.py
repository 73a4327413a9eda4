"""Reads a sample by a suggested mapping: the rows that a load would refuse, with advice. No value of
a member is in it, only places of rows.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from frontdesk import codes
from frontdesk.codes import Code
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import check_dates, missing_on_create
from frontdesk.eligibility.model import MemberRecord
from frontdesk.eligibility.persons import fold_name
from frontdesk.mapping.model import REPEATED, Row
from frontdesk.mapping.opening import with_addresses
from frontdesk.mapping.parser import parse_mapping, remedy_for
from frontdesk.mapping.suggest.sample import Sample
from frontdesk.mapping.table import TableColumns

_SHOWN_PLACES = 5
_PERSON = ("first_name", "last_name", "dob")
_ReadRow = tuple[Row, MemberRecord]


def try_mapping(sample: Sample, mapping: dict[str, Any], today: str) -> dict[str, Any]:
    """As JSON, how many rows would be refused if their members were new, and for what; how many are
    left out.
    """
    table = TableColumns(sample.names, parse_mapping(mapping), is_1904=sample.is_1904)
    cells_of_rows = (*sample.rows, *sample.odd_rows)
    placed = zip((*sample.places, *sample.odd_places), cells_of_rows, strict=True)
    rows = [
        row
        for row in with_addresses(table.row(place, cells) for place, cells in placed)
        if not row.skipped
    ]
    read = [(row, parse_member(row.values, today=today, lenient=True)) for row in rows]
    repeated = _repeated(read)
    places = {row.place for group in repeated for row, _ in group}
    faults_of_rows = [_faults_of(row, record, places) for row, record in read]
    counted = Counter(chain.from_iterable(faults_of_rows))
    whole = sum(not row.faults for row in rows)

    def advice(field: str, code: str, times: int) -> str | None:
        if code == REPEATED.code:
            return _advice_on_repeated(repeated)
        if code != codes.faults.REQUIRED:
            return None
        lack = f"{times:,} of {whole:,} rows lack it"
        return f"{lack}: {remedy_for(field)}; else ask the sender for it."

    return {
        "rows": len(cells_of_rows),
        "refused_rows": sum(map(bool, faults_of_rows)),
        "skipped_rows": len(cells_of_rows) - len(rows),
        "refused": [
            {"field": field, "code": code, "rows": times, "advice": advice(field, code, times)}
            for (field, code), times in counted.most_common()
        ],
    }


def _repeated(read: Iterable[_ReadRow]) -> list[list[_ReadRow]]:
    """The rows that have one external_id and different values, by external_id."""
    by_key = defaultdict[str, list[_ReadRow]](list)
    for row, record in read:
        if record.external_id and not row.faults:
            by_key[record.external_id].append((row, record))
    return [
        group for group in by_key.values() if len({repr(record.given) for _, record in group}) > 1
    ]


def _faults_of(
    row: Row, record: MemberRecord, repeated: Collection[int]
) -> dict[tuple[str, Code], None]:
    dates = check_dates(record.given.get("effective_date"), record.given.get("expiry_date"))
    faults = row.faults or (*record.faults, *missing_on_create(record), *filter(None, [dates]))
    others = [REPEATED] if row.place in repeated else []
    return dict.fromkeys((fault.field, fault.code) for fault in (*faults, *others))


def _advice_on_repeated(groups: Sequence[Sequence[_ReadRow]]) -> str:
    """Which rows are of several people under one identifier, and which of one person twice."""
    clashes: list[Sequence[_ReadRow]] = []
    others: list[Sequence[_ReadRow]] = []
    for group in groups:
        people = {_person_of(record) for _, record in group}
        (clashes if len(people) > 1 else others).append(group)
    advice = []
    if clashes:
        advice.append(
            f"{len(clashes):,} times several people have one identifier: {_places_of(clashes)}. "
            "Ask the sender for their own numbers, or make the identifier from more columns."
        )
    if others:
        advice.append(
            f"{len(others):,} times rows of one person differ: {_places_of(others)}. Leave out "
            "the rows that do not count (skip), or do not read the columns that differ (null)."
        )
    return " ".join([*advice, "These rows are refused, and the others are loaded."])


def _places_of(groups: Sequence[Sequence[_ReadRow]]) -> str:
    """`rows 3 and 9; rows 4 and 5`"""
    shown = []
    for group in groups[:_SHOWN_PLACES]:
        *places, last = [str(row.place) for row, _ in group[:_SHOWN_PLACES]]
        shown.append(f"rows {', '.join(places)} and {last}")
    return "; ".join(shown) + ("; …" if len(groups) > _SHOWN_PLACES else "")


def _person_of(record: MemberRecord) -> tuple[str, ...]:
    return tuple(fold_name(str(record.given.get(name) or "")) for name in _PERSON)
