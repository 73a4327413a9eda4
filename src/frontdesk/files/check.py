"""The first reading of a file, before its first row is applied: can it be read, what is its date and
mode, which stored members does it list. It writes nothing.
"""

import hmac
import re
import zlib
from array import array
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice, pairwise
from typing import NamedTuple

from frontdesk import codes, eligibility
from frontdesk.access.accounts import get_account
from frontdesk.clock import account_day
from frontdesk.db import Database, sets
from frontdesk.eligibility.model import Action
from frontdesk.eligibility.persons import PERSON_FIELDS, fold_name
from frontdesk.files import model, store
from frontdesk.files.claims import FileClaim, GoOn, reading_ahead
from frontdesk.files.content import PART_BYTES
from frontdesk.files.drafts import content_part
from frontdesk.files.families import FamilyRecogniser, KnownRows
from frontdesk.files.list_day import is_list_of, likely_list_day
from frontdesk.files.row_digests import RowDigests
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.model import (
    FileHeader,
    ReadItem,
    Row,
    UnreadRows,
    keys_of,
    read_loops,
    read_rows,
)
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import PLAIN, parse_mapping
from frontdesk.mapping.x12 import X12Options
from frontdesk.plans import list_plans
from frontdesk.plans.model import Plan
from frontdesk.reach import Reach
from frontdesk.text import are_mostly_ssns
from frontdesk.usage import find_quota

DENSE_ROWS = 10_000  # a smaller file may have more rows than bytes, compressed
SAMPLED_ROWS = 200  # rows with identifiers to look at
# What a row stores in history and report, for a file that could exceed the account's quota: a new
# member leaves as much.
STORED_BYTES_OF_ROW = 1024
LOOKUP_KEYS = 2000
HALF_MEMBERS = 5  # so many count as too many if they are half of all (files.brakes)
_LEADING_ZEROS = re.compile("(?<![0-9])0+(?=[0-9])")
_SSN_DETAIL = (
    "Most values of {0} look like social security numbers, which would be stored and shown as they "
    "are. Make {0} from another column. If these are no social security numbers, or are to be stored "
    'as they are, say "ssn": "plain" in the mapping.'
)


class SimilarRow(NamedTuple):
    """A row of a new member that resembles a stored member which the file omits. `is_respelt`: the
    identifiers differ by zeros, letter case or punctuation only.
    """

    member_id: int
    place: int
    is_respelt: bool


class KnownMembers(NamedTuple):
    """The stored members that concern the brakes. `met` are the ids of those in the file, in order.
    `is_news`: some row is not the one that its stored member agrees with.
    """

    met: Sequence[int]
    is_news: bool
    similar: Sequence[SimilarRow]


class Placeholders(NamedTuple):
    """How many values of a field stand for none (`found`), of those in the sampled rows (`of`)."""

    field: str
    found: int
    of: int


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of the first reading. `mode` is the caller's, else the file's; `unnamed` counts
    the rows without a readable identifier. `met`, `is_news` and `similar` are as in KnownMembers.
    `placeholders` are those of the first SAMPLED_ROWS rows.

    `contradictory` are the hashes of identifiers on differing rows of a table. Of an 834 `apart`
    are the numbers of rows whose member has other rows elsewhere in the file, and `families`
    recognises families by their text; None if a row needs another family. `list_day` is the later day
    of which a full file is the list (files.list_day), else "".
    """

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    unnamed: int
    met: Sequence[int]
    is_news: bool
    similar: Sequence[SimilarRow]
    placeholders: Sequence[Placeholders]
    contradictory: frozenset[int]
    apart: Sequence[int]
    families: FamilyRecogniser | None
    list_day: str = ""


def check_file(claim: FileClaim) -> CheckResult:
    """The result of the first reading. Raises Unreadable, MappingNeeded, Stopped, LostClaim."""
    check = _FileCheck(claim.db, claim.file)

    def checkpoint() -> None:
        claim.checkpoint(model.FileStep.CHECK, check.rows)

    with reading_ahead(check.read, claim.running, checkpoint=checkpoint) as results:
        [result] = results
    return result


class _FamiliesDepend(Exception):
    """A row of the file needs another family, or a member is in two of them."""


class _StoredContent:
    """The content as a stream that holds one part at a time. `read` calls `go_on` and raises what
    it raises.
    """

    def __init__(self, db: Database, file: model.EligibilityFile, go_on: GoOn) -> None:
        self._db = db
        self._file = file
        self._go_on = go_on
        self._number = 0  # of the next part
        self._left = memoryview(b"")

    def read(self, size: int = PART_BYTES, /) -> bytes:
        """At most `size` bytes, none at the end."""
        self._go_on()
        if not self._left:
            self._read_part()
        data = self._left[:size]
        self._left = self._left[size:]
        return bytes(data)

    def _read_part(self) -> None:
        draft_id = self._file.draft_id
        if draft_id is None:
            find_part = partial(store.find_part, file_id=self._file.id)
        else:
            find_part = partial(content_part, draft_id=draft_id)
        part = self._db.ask(partial(find_part, number=self._number))
        if part is not None:
            self._left = memoryview(zlib.decompress(part))
            self._number += 1


def open_rows(
    db: Database, file: model.EligibilityFile, go_on: GoOn, *, apart: Sequence[int] = ()
) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The stored file's header and rows, from its beginning (open_unread). Calls `go_on` at each
    piece of the content, and while there is no row. Raises Unreadable, here or from the rows.
    """
    content = _StoredContent(db, file, go_on)
    mapping = parse_mapping(file.mapping or {})
    # The account's secret for the digests in identifiers, which stays the same.
    label = f"834 of account {file.account_id}".encode()
    key = db.ask(sets.installation_key)
    secret = hmac.digest(key, label, "sha256")
    x12 = X12Options(file.asked_mode, secret, apart)
    encoding = file.encoding or "utf-8"
    return open_unread(content, file.format, encoding, mapping, x12=x12, go_on=go_on)


@dataclass(slots=True)
class _Reading:
    """What the rows of a file have said so far. `unnamed` counts rows without an identifier."""

    identifiers: "_IdentifierIndex"
    sample: list[Row] = field(default_factory=list)
    unnamed: int = 0


class _FileCheck:
    """The first reading of one file. `rows` is its progress."""

    def __init__(self, db: Database, file: model.EligibilityFile) -> None:
        self._db = db
        self._file = file
        self.rows = 0

    def read(self, go_on: GoOn) -> Generator[CheckResult]:
        """Yields the result."""
        self._go_on = go_on
        is_begun = self._file.rows_done > 0 and not self._file.dry_run
        # A file that was begun is not cut off: the quota may have become smaller.
        self._most_rows = None if is_begun else self._find_most_rows()
        try:
            result = self._read_file(by_family=not is_begun)
        except _FamiliesDepend:
            result = self._read_file(by_family=False)
        yield result

    def _find_most_rows(self) -> int:
        """As many rows as the account may store in a day."""
        quota = self._db.ask(partial(find_quota, account_id=self._file.account_id))
        return quota.stored_bytes_per_day // STORED_BYTES_OF_ROW

    def _day_of_upload(self) -> str:
        """The day of the upload where the members live, at the latest: an end by absence on that day
        takes nobody's last day.
        """
        account = self._db.ask(partial(get_account, account_id=self._file.account_id))
        return account_day(self._file.created_at, account.time_zone).latest

    def _read_file(self, *, by_family: bool) -> CheckResult:
        """Raises _FamiliesDepend if families can't be recognised separately."""
        header, items = open_rows(self._db, self._file, self._go_on)
        mode = header.mode or self._file.mode
        file_date = header.file_date or self._day_of_upload()
        plans = self._db.ask(partial(list_plans, reach=Reach.of(self._file.account_id)))
        families = None
        if by_family and header.format is Format.X12 and mode is not FileMode.COMPARE:
            families = FamilyRecogniser(self._db, self._file, plans)
            families.make_index()
        digests = RowDigests(self._db, self._file, header, plans, mode=mode, families=families)
        members = _MemberLookup(self._db, self._file, plans, file_date, mode=mode, digests=digests)
        reading = self._read_rows(items, families, members)
        differing = reading.identifiers.differing()
        rows = self.rows
        apart = array("Q")
        contradictory = frozenset[int]()
        if header.format is Format.X12:
            apart, of_members = self._rows_apart(differing)
            rows += of_members - len(apart)  # the rows of a member become one
        else:
            self._check_ssns(reading.sample)
            contradictory = self._still_differing(differing)
        known = members.finish()
        return CheckResult(
            header=header,
            rows=rows,
            mode=mode,
            file_date=file_date,
            unnamed=reading.unnamed,
            met=known.met,
            is_news=known.is_news or bool(contradictory) or bool(apart),
            similar=known.similar,
            placeholders=_placeholders_in(reading.sample),
            contradictory=contradictory,
            apart=apart,
            families=None if apart else families,
            list_day=self._find_list_day(reading.sample, file_date)
            if mode is FileMode.FULL
            else "",
        )

    def _find_list_day(self, sample: Sequence[Row], file_date: str) -> str:
        """The later day of which the file is the list, "" without one. Only if its first rows say
        so the file is read for it.
        """
        today = max(file_date, self._day_of_upload())
        day = likely_list_day(sample, today)
        if day:
            _, items = open_rows(self._db, self._file, self._go_on)
            if is_list_of(read_rows(items), day, today):
                return day
        return ""

    def _read_rows(
        self, items: Iterable[ReadItem], families: FamilyRecogniser | None, members: "_MemberLookup"
    ) -> _Reading:
        """Read all rows, and look up their members. Raises Unreadable, _FamiliesDepend."""
        reading = _Reading(_IdentifierIndex())
        most_rows = max(self._file.size_bytes, DENSE_ROWS)
        self.rows = 0
        for item in families.recognised(items) if families else read_loops(items):
            self._go_on()
            self.rows += 1 if isinstance(item, Row) else len(item)
            if self.rows > most_rows:
                # A million identifiers alone, compressed, take two bytes each.
                raise Unreadable(
                    codes.files.ZIP_BOMB,
                    "The file has more rows than bytes: no list of members does.",
                )
            if isinstance(item, KnownRows):
                members.recognised.extend(item.member_ids)
                continue
            self._refuse_too_many(self.rows - len(members.recognised))
            if isinstance(item, Row):
                if item.skipped:
                    continue
                if families and item.leans_on_other:
                    raise _FamiliesDepend
            missing = SAMPLED_ROWS - len(reading.sample)
            if missing > 0:
                reading.sample += islice(read_rows([item]), missing)
            keys = keys_of(item)
            reading.unnamed += keys.count(None)
            members.add(item, keys)
            reading.identifiers.add(item, keys)
        return reading

    def _refuse_too_many(self, rows: int) -> None:
        """Raises Unreadable if so many rows could store more than the account may in a day."""
        if self._most_rows is not None and rows > self._most_rows:
            remedy = "Send it in parts on several days, or ask the operator for a larger quota."
            detail = (
                f"The file has more than {self._most_rows:,} rows, "
                f"more than the account may store in a day. {remedy}"
            )
            raise Unreadable(codes.files.TOO_MANY_ROWS, detail)

    def _check_ssns(self, sample: Sequence[Row]) -> None:
        """Raises Unreadable if identifiers of a table look like social security numbers, unless its
        mapping wants them.
        """
        if parse_mapping(self._file.mapping or {}).ssn == PLAIN:
            return
        for name in ("external_id", "member_id"):
            values = [row.values.get(name) for row in sample]
            texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
            if texts and are_mostly_ssns(texts):
                raise Unreadable(codes.files.LOOKS_LIKE_SSN, _SSN_DETAIL.format(name))

    def _still_differing(self, differing: frozenset[int]) -> frozenset[int]:
        """Rows of one identifier with different texts may be equal once parsed: parse them."""
        parsed = _IdentifierIndex()
        for key, row in self._rows_of(differing):
            parsed.add(row, [key])
        return parsed.differing()

    def _rows_apart(self, differing: frozenset[int]) -> tuple["array[int]", int]:
        """The numbers of the rows of an 834 of members with differing rows, in order, and the
        number of these members.
        """
        row_numbers = array("Q")
        members = set[int]()
        for key, row in self._rows_of(differing):
            row_numbers.append(row.place)
            members.add(hash(key))
        return array("Q", sorted(row_numbers)), len(members)

    def _rows_of(self, key_hashes: frozenset[int]) -> Iterator[tuple[str, Row]]:
        """Each row of these identifiers, with its identifier. Reads the file only if there are any."""
        if not key_hashes:
            return
        _, items = open_rows(self._db, self._file, self._go_on)
        for item in read_loops(items):
            for position, key in enumerate(keys_of(item)):
                if key is not None and hash(key) in key_hashes:
                    yield key, item.row(position)


def _placeholders_in(sample: Sequence[Row]) -> list[Placeholders]:
    found = []
    for name in ("email", "phone"):
        values = [row.values.get(name) for row in sample]
        texts = [value for value in values if isinstance(value, str) and value.strip()]
        records = [eligibility.parse_member({name: text}, today="") for text in texts]
        count = sum(bool(record.warnings) for record in records)
        found.append(Placeholders(name, count, len(texts)))
    return found


def _hash_of(row: Row) -> int:
    """Equal for equal rows, in any order of their fields."""
    try:
        values = hash(frozenset(row.values.items()))
    except TypeError:  # metadata is an object
        values = hash(repr(sorted(row.values.items())))
    # Each refused row stays a row of its own, so that its number is that of its loop.
    person = None if row.faults else row.context.person
    of_row = (values, row.action, row.plan, row.faults != (), person, row.context.coverages)
    return hash(of_row)


class _IdentifierIndex:
    """Finds the identifiers with differing rows, in 16 bytes a row.

    Identifiers and rows are stored as 64-bit hashes: two of a million identifiers collide once in
    forty million files.
    """

    def __init__(self) -> None:
        self._keys = array("q")
        self._rows = array("q")

    def add(self, item: Row | UnreadRows, keys: Sequence[str | None]) -> None:
        row_hashes = map(hash, item.texts) if isinstance(item, UnreadRows) else [_hash_of(item)]
        for key, row_hash in zip(keys, row_hashes, strict=True):
            if key is not None:
                self._keys.append(hash(key))
                self._rows.append(row_hash)

    def differing(self) -> frozenset[int]:
        """The hashes of the identifiers with differing rows."""
        keys = self._keys
        rows = self._rows
        in_order = array("I", sorted(range(len(keys)), key=keys.__getitem__))
        found = set[int]()
        for index, following in pairwise(in_order):
            if keys[index] == keys[following] and rows[index] != rows[following]:
                found.add(keys[index])
        return frozenset(found)


def _bare(external_id: str) -> str:
    """An identifier without letter case, punctuation and leading zeros.

    >>> _bare("A-00042"), _bare("a42")
    ('a42', 'a42')
    """
    return _LEADING_ZEROS.sub("", fold_name(external_id))


class _MemberLookup:
    """Looks up the members of a file's rows, refused rows too, as far as the brakes need it."""

    def __init__(
        self,
        db: Database,
        file: model.EligibilityFile,
        plans: Sequence[Plan],
        day: str,
        *,
        mode: FileMode,
        digests: RowDigests,
    ) -> None:
        self._db = db
        self._file = file
        self._day = day
        self._digests = digests
        self._plan_ids = [plan.id for plan in plans]
        self._plans_by_name = {None: file.plan_id} | {plan.external_id: plan.id for plan in plans}
        is_decided = file.rows_done > 0 and not file.dry_run
        # Fewer members can't trigger a brake.
        self._finds_similar = not is_decided and self._has_members(HALF_MEMBERS)
        self._is_on = mode is not FileMode.COMPARE and self._has_members(1)
        self._waiting: list[tuple[str, str | None, Row | UnreadRows, int]] = []
        self._met = array("q")
        self._is_news = False
        self._similar = list[SimilarRow]()
        # Ids of members whose rows were recognised with their families.
        self.recognised = array("q")

    def _has_members(self, count: int) -> bool:
        has_some = partial(eligibility.has_members, plan_ids=self._plan_ids, count=count)
        return self._db.ask(has_some)

    def add(self, item: Row | UnreadRows, keys: Sequence[str | None]) -> None:
        """Note rows and the identifiers of their members; None where a row has none."""
        if not self._is_on:
            return
        self._is_news |= None in keys
        noted = zip(keys, self._digests.digests_of(item), count())
        self._waiting += [(key, digest, item, position) for key, digest, position in noted if key]
        if isinstance(item, Row) and item.context.former_id:
            self._waiting.append((item.context.former_id, None, item, 0))
        if len(self._waiting) >= LOOKUP_KEYS:
            self._look_up()

    def finish(self) -> KnownMembers:
        """All members that were found. Raises _FamiliesDepend for a member in two families."""
        self._look_up()
        read = set(self._met)
        met = array("q", sorted(read.union(self.recognised)))
        if len(met) < len(read) + len(self.recognised):
            raise _FamiliesDepend
        listed = {each.member_id for each in self._similar}.intersection(met)
        similar = [each for each in self._similar if each.member_id not in listed]
        return KnownMembers(met, self._is_news, similar)

    def _look_up(self) -> None:
        waiting = self._waiting
        self._waiting = []
        keys = [key for key, *_ in waiting]
        find = partial(eligibility.find_known, external_ids=keys, account_id=self._file.account_id)
        known = self._db.ask(find)
        new = []
        for key, digest, item, position in waiting:
            member = known.get(key)
            if member is not None:
                self._met.append(member.id)
                self._is_news |= digest is None or digest != member.row_digest
            else:
                self._is_news = True
                if self._finds_similar:
                    new.append(item.row(position))
        if new:
            self._find_similar(new)

    def _find_similar(self, rows: Iterable[Row]) -> None:
        people = []
        searched = []
        for row in rows:
            enrols = row.action is Action.ENROL and not row.faults
            if not enrols or self._plans_by_name.get(row.plan) is None:
                continue
            values = {name: row.values[name] for name in PERSON_FIELDS if name in row.values}
            given = eligibility.parse_member(values, today=self._day).given
            if given.keys() >= PERSON_FIELDS:
                people.append({**given, "account_id": self._file.account_id})
                searched.append(row)
        find = partial(eligibility.find_look_alikes, people=people, today=self._day)
        found = self._db.ask(find)
        ids = {id_ for id_ in found if id_ is not None}
        names = self._db.ask(partial(eligibility.external_ids_of, ids=ids)) if ids else {}
        for id_, row in zip(found, searched, strict=True):
            if id_ is not None:
                own_id = str(row.values["external_id"]).strip()
                is_respelt = _bare(own_id) == _bare(names.get(id_) or "")
                self._similar.append(SimilarRow(id_, row.place, is_respelt))
