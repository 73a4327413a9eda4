"""Members that a full file omits, and keeps because a refused row may be about them: it has their
family, or their names and birth date, as far as it has these (docs/files.md, Full files). Members
with the identifier of a refused row are not omitted (files.check).

Nothing of this is stored, so after a death another worker finds the same. The file is read once
more for each OMITTED_TOGETHER members, of which about 70 MiB are in memory.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import Any

from frontdesk import eligibility
from frontdesk.db import Database
from frontdesk.eligibility.model import StatedPerson
from frontdesk.eligibility.persons import PERSON_FIELDS, stated_person
from frontdesk.eligibility.same_person import (
    first_name_spellings,
    last_name_spellings,
    spellings,
    versions_of,
)
from frontdesk.files import model, row_store
from frontdesk.files.absence import find_missing
from frontdesk.files.check import CheckResult, open_rows
from frontdesk.files.claims import FileClaim, GoOn, reading_ahead
from frontdesk.formats.model import FileMode
from frontdesk.formats.x12 import Family
from frontdesk.mapping.model import ReadItem, Row, UnreadLoops, UnreadRows

OMITTED_TOGETHER = 50_000  # members
CHUNKS_TOGETHER = 100  # of a report

# What a member has in common with a refused row: a family; names and a birth date, "" for any; or a
# birth date alone.
PersonKey = tuple[str, ...]


def kept_by_refused(
    claim: FileClaim, check: CheckResult, places: Sequence[int]
) -> Mapping[int, int]:
    """The omitted members that refused rows with these numbers may mean, as `find_kept`, while a
    thread reads the file. Raises as a checkpoint.
    """
    if check.mode is not FileMode.FULL or not places:
        return {}

    def read(go_on: GoOn) -> Generator[Mapping[int, int]]:
        yield find_kept(claim.db, claim.file, check, places, go_on)

    def checkpoint() -> None:
        claim.checkpoint(model.FileStep.END, 0)

    with reading_ahead(read, claim.running, checkpoint=checkpoint) as results:
        [kept] = results
    return kept


def list_refused(db: Database, file: model.EligibilityFile) -> Sequence[int]:
    """The row numbers of the file's refused rows, ascending."""
    found = (place for place, _ in _lines(db, file, model.REFUSED) if place is not None)
    return array("q", sorted(found))


def list_kept(db: Database, file: model.EligibilityFile) -> Collection[int]:
    """The ids of the members that the file's report lists as kept."""
    return {member_id for _, member_id in _lines(db, file, model.KEPT) if member_id is not None}


def find_kept(
    db: Database,
    file: model.EligibilityFile,
    check: CheckResult,
    places: Sequence[int],
    go_on: GoOn,
) -> Mapping[int, int]:
    """The members that the file would end if it had no refused rows: their ids, with the number of
    a refused row that may be about them. `places` are the numbers of the refused rows, ascending.

    Calls `go_on` now and then. Raises Unreadable, and what `go_on` raises.
    """
    kept: dict[int, int] = {}
    if not places:
        return kept
    day = f"{file.created_at:%Y-%m-%d}"
    for omitted in _omitted_people(db, file, check, go_on):
        for row in _rows_at(db, file, check, places, go_on):
            for key in _keys_of_row(row, day):
                # Later rows with the key mean the same members, so each key is looked up once.
                for member_id in omitted.pop(key, ()):
                    kept.setdefault(member_id, row.place)
    return kept


def _lines(
    db: Database, file: model.EligibilityFile, outcome: str
) -> Iterator[tuple[int | None, int | None]]:
    for first in range(0, file.chunks_done, CHUNKS_TOGETHER):
        chunks = range(first, first + CHUNKS_TOGETHER)
        yield from db.ask(
            partial(row_store.list_lines, file_id=file.id, outcome=outcome, chunks=chunks)
        )


def _omitted_people(
    db: Database, file: model.EligibilityFile, check: CheckResult, go_on: GoOn
) -> Iterator[dict[PersonKey, list[int]]]:
    """The ids of the members that the file omits, by their keys, OMITTED_TOGETHER at a time."""
    by_key: dict[PersonKey, list[int]] = {}
    members = 0
    for batch in find_missing(db, file, check):
        go_on()
        if not batch:
            continue
        find_people = partial(eligibility.find_people, ids=[member.id for member in batch])
        for member_id, person in db.ask(find_people):
            for key in _keys_of_member(person):
                by_key.setdefault(key, []).append(member_id)
        members += len(batch)
        if members >= OMITTED_TOGETHER:
            yield by_key
            by_key = {}
            members = 0
    if by_key:
        yield by_key


def _rows_at(
    db: Database,
    file: model.EligibilityFile,
    check: CheckResult,
    places: Sequence[int],
    go_on: GoOn,
) -> Iterator[Row]:
    """The file's rows with these numbers. Reads the file from its beginning."""
    _, items = open_rows(db, file, go_on, apart=check.apart)
    for item in _read_near(items, places, passes=not check.apart):
        go_on()
        if isinstance(item, UnreadRows):
            first = bisect_left(places, item.place)
            for place in places[first : bisect_left(places, item.place + len(item))]:
                yield item.row(place - item.place)
        elif _has_place(places, item.place, item.place):
            yield item


def _read_near(
    items: Iterable[ReadItem], places: Sequence[int], *, passes: bool
) -> Iterator[Row | UnreadRows]:
    """The items. With `passes`, a family of an 834 is not read if it has none of the places."""
    for item in items:
        if not isinstance(item, UnreadLoops):
            yield item
        elif passes and item.family is not None and not _has_any(places, item.family):
            yield from item.pass_by()
        else:
            yield from item.read()


def _has_any(places: Sequence[int], family: Family) -> bool:
    segments = family.segments.text.count(family.segments.terminator)
    return _has_place(places, family.place, family.place + segments)


def _has_place(places: Sequence[int], first: int, last: int) -> bool:
    position = bisect_left(places, first)
    return position < len(places) and places[position] <= last


def _keys_of_row(row: Row, day: str) -> Iterable[PersonKey]:
    """The keys of the row's person, as far as they can be read; a birth date after the day can't."""
    person = row.context.person
    if person is None:
        said = row.values if row.stated_values is None else row.stated_values
        values = {name: said[name] for name in PERSON_FIELDS if name in said}
        versions = [stated_person(_read(values, day))]
    else:
        versions = [
            version._replace(dob=_read({"dob": version.dob}, day).get("dob") or "")
            for version in versions_of(person)
        ]
    return chain.from_iterable(map(_keys_of_version, versions))


def _read(values: Mapping[str, object], day: str) -> Mapping[str, Any]:
    return eligibility.parse_member(values, today=day, lenient=True).given


def _keys_of_version(person: StatedPerson) -> Iterator[PersonKey]:
    """The keys of a person as the row states it. What it lacks does not differ: without a birth date
    it is about anybody with its names, without a first or last name about anybody with its birth
    date. An initial and the placeholder of a newborn are no first name.
    """
    yield from _keys_of_known(person)
    if not person.dob:
        return
    last_names = last_name_spellings(person.last_name)
    if not first_name_spellings(person.first_name) or not last_names:
        yield _born_on(person.dob)
    for last_name in last_names:
        yield "", last_name, person.dob


def _keys_of_member(person: StatedPerson) -> Iterator[PersonKey]:
    """The keys of a stored member: those of rows that state what it has, or less."""
    yield from _keys_of_known(person)
    for first_name, last_name in _names(person):
        yield first_name, last_name, ""
    yield _born_on(person.dob)
    if not first_name_spellings(person.first_name):
        for last_name in last_name_spellings(person.last_name):
            yield "", last_name, person.dob


def _keys_of_known(person: StatedPerson) -> Iterator[PersonKey]:
    """The family, and both names with the birth date, "" without one."""
    if person.family:
        yield (person.family,)
    for first_name, last_name in _names(person):
        yield first_name, last_name, person.dob


def _names(person: StatedPerson) -> Iterator[tuple[str, str]]:
    first_names = spellings(person.first_name) | first_name_spellings(person.first_name)
    return product(first_names, last_name_spellings(person.last_name))


def _born_on(dob: str) -> PersonKey:
    return "", dob
