"""The first reading of a stored file, before anything of it is applied: is it readable, what does it name, and which stored
members are these."""

from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice

from frontdesk.db import Database
from frontdesk.eligibility import (
    find_known,
    find_look_alikes,
    has_members,
    parse_member,
    read_external_id,
    read_external_ids,
)
from frontdesk.eligibility.model import Action
from frontdesk.eligibility.similar import PERSON_FIELDS
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import EligibilityFile, FileStep
from frontdesk.files.producer import GoOn, Producer
from frontdesk.files.rows import open_rows
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.model import FileHeader, Row, UnreadRows, count_rows
from frontdesk.mapping.parser import PLAIN, parse_mapping
from frontdesk.plans import list_plans
from frontdesk.text import are_mostly_ssns

DENSITY_ROWS = 10_000  # between two looks at the density
SAMPLED_ROWS = 200  # whose identifiers are looked at
LOOKUP_KEYS = 2000
FEWEST_SIMILAR = 25  # fewer new members who look alike hold no file
_STORED = (
    "Most values of {0} look like social security numbers, which would be stored and shown as they are. Make {0} from another "
    'column. If these are no social security numbers, or are to be stored as they are, say "ssn": "plain" in the mapping.'
)
_BUCKETS = 256  # looked through one at a time, which needs little memory besides the hashes themselves


@dataclass(frozen=True, slots=True)
class NamedMembers:
    """The stored members that a file's rows name: the ids of all, in order, and of those that would leave another plan. `similar`
    has for each new member that looks like a stored one which the file does not name the id of that one and the row's place."""

    met: Sequence[int]
    moving: Sequence[int]
    similar: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is the file's own, else the caller's; `unnamed` counts the rows without a
    readable identifier; `members` are the stored ones that the rows name. `contradictory` are the hashes of the identifiers of a
    table that stand on differing rows, which can't all be meant. Of an 834 `apart` are the places of the rows of members with
    others elsewhere in the file.
    """

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    unnamed: int
    members: NamedMembers
    contradictory: frozenset[int]
    apart: Sequence[int]


def check_file(claim: FileClaim) -> CheckResult:
    """The result of the first reading. Raises Unreadable, Stopped, LostClaim."""
    check = _FileCheck(claim.db, claim.file)
    with Producer(check.read, claim.running) as producer:
        [result] = producer.items(lambda: claim.checkpoint(FileStep.CHECK, check.rows))
    return result


class _FileCheck:
    """The first reading of one file. `rows` is how far it is."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db, self._file = db, file
        self._members = _MemberLookup(db, file)
        self._identifiers, self._unnamed = _IdentifierIndex(), 0
        self._sample: list[Row] = []
        self.rows = 0

    def read(self, go_on: GoOn) -> Generator[CheckResult]:
        """Yields the result."""
        self._go_on = go_on
        header = self._read_all()
        apart: Sequence[int] = ()
        count, differing = self.rows, self._identifiers.differing()
        if header.format is Format.X12:
            apart, people = self._rows_apart(differing)
            count, differing = count - len(apart) + people, frozenset()  # the rows of a member become one
        else:
            self._check_ssns()
            differing = self._still_differing(differing)
        mode, members = header.mode or self._file.mode, self._members.finish()
        yield CheckResult(header, count, mode, self._day(header), self._unnamed, members, differing, apart)

    def _day(self, header: FileHeader) -> str:
        return header.file_date or self._file.created_at.date().isoformat()

    def _read_all(self) -> FileHeader:
        header, items = open_rows(self._db, self._file, self._go_on)
        self._members.begin(self._day(header), header.mode or self._file.mode)
        self.rows, looked = 0, 0
        for item in items:
            self.rows += count_rows(item)
            if self.rows >= looked + DENSITY_ROWS:
                looked = self.rows
                if (
                    self.rows > self._file.size_bytes
                ):  # a million identifiers alone, compressed, take two bytes each
                    message = "The file has more rows than bytes: no list of members does."
                    raise Unreadable("zip_bomb", message)
            if isinstance(item, UnreadRows):
                self._sample += islice(item.rows(), SAMPLED_ROWS - len(self._sample))
                self._note_unread(item)
            elif not item.skipped:
                if len(self._sample) < SAMPLED_ROWS:
                    self._sample.append(item)
                self._note(item)
        return header

    def _check_ssns(self) -> None:
        """Raises Unreadable for a table whose identifiers look like social security numbers, unless its mapping wants them."""
        if parse_mapping(self._file.mapping or {}).ssn == PLAIN:
            return
        for name in ("external_id", "member_id"):
            values = [
                text for row in self._sample if isinstance(text := row.values.get(name), str) and text.strip()
            ]
            if values and are_mostly_ssns([text.strip() for text in values]):
                raise Unreadable("looks_like_ssn", _STORED.format(name))

    def _note_unread(self, rows: UnreadRows) -> None:
        keys, hashes = read_external_ids(rows.keys), map(hash, rows.texts)
        named = [key for key in keys if key is not None]
        self._unnamed += len(keys) - len(named)
        self._members.add_unread(rows, keys)
        self._identifiers.add(named, compress(hashes, (key is not None for key in keys)))

    def _note(self, row: Row) -> None:
        key = read_external_id(row.key)
        if key is None:
            self._unnamed += 1
        else:
            self._members.add(key, row)
            self._identifiers.add((key,), (_hash_of(row),))
            if row.context.former_id:
                self._members.add(row.context.former_id, row)

    def _still_differing(self, differing: frozenset[int]) -> frozenset[int]:
        """Rows of one identifier that were written in different ways may say the same: read those."""
        read = _IdentifierIndex()
        self._read_rows_of(differing, lambda key, row: read.add((key,), (_hash_of(row),)))
        return differing & read.differing()

    def _rows_apart(self, differing: frozenset[int]) -> tuple[Sequence[int], int]:
        """The places of the rows of an 834 of members with differing rows, in order, and the number of these members."""
        places, members = array("Q"), set()

        def note(key: str, row: Row) -> None:
            places.append(row.place)
            members.add(hash(key))

        self._read_rows_of(differing, note)
        return array("Q", sorted(places)), len(members)

    def _read_rows_of(self, wanted: frozenset[int], note: Callable[[str, Row], None]) -> None:
        """Give `note` each row of these identifiers, with its identifier. Reads the file only if there are any."""
        if not wanted:
            return
        for item in open_rows(self._db, self._file, self._go_on)[1]:
            if isinstance(item, UnreadRows):
                for position, key in enumerate(read_external_ids(item.keys)):
                    if key is not None and hash(key) in wanted:
                        note(key, item.row(position))
            elif (key := read_external_id(item.key)) is not None and hash(key) in wanted:
                note(key, item)


def _hash_of(row: Row) -> int:
    """Equal for rows that say the same, whatever the order of their fields."""
    try:
        values = hash(frozenset(row.values.items()))
    except TypeError:  # metadata is an object
        values = hash(repr(sorted(row.values.items())))
    return hash((values, row.action, row.plan, row.faults != (), row.context.person))


class _IdentifierIndex:
    """Finds the identifiers that stand on differing rows, in 16 bytes a row.

    Identifiers and rows are kept as 64-bit hashes: two of a million identifiers agree by chance once in forty million
    files. Call `add` for all rows, then `differing` once.
    """

    def __init__(self) -> None:
        self._keys = [array("q") for _ in range(_BUCKETS)]
        self._rows = [array("q") for _ in range(_BUCKETS)]

    def add(self, keys: Iterable[str], row_hashes: Iterable[int]) -> None:
        all_keys, all_rows = self._keys, self._rows
        for hashed, row_hash in zip(map(hash, keys), row_hashes, strict=True):
            bucket = hashed % _BUCKETS
            all_keys[bucket].append(hashed)
            all_rows[bucket].append(row_hash)

    def differing(self) -> frozenset[int]:
        """The hashes of these identifiers."""
        found: set[int] = set()
        for keys, rows in zip(self._keys, self._rows, strict=True):
            if len(set(keys)) != len(keys):
                first: dict[int, int] = {}
                found.update(
                    key for key, row in zip(keys, rows, strict=True) if first.setdefault(key, row) != row
                )
        self._keys, self._rows = [], []
        return frozenset(found)


class _MemberLookup:
    """Looks up the members of a file's rows, refused rows too. Nothing is looked up where it does not matter any more."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db, self._file = db, file
        plans = db.ask(lambda tx: list_plans(tx, file.account_id))
        self._plan_ids = {plan.external_id: plan.id for plan in plans}
        is_decided = file.approved or (file.rows_done > 0 and not file.dry_run)
        # Fewer members can't be too many.
        some = partial(has_members, plan_ids=[plan.id for plan in plans], count=FEWEST_SIMILAR + 1)
        self._wants_similar = not is_decided and db.ask(some)
        self._wants_moves = not is_decided and len(plans) > 1
        self._waiting: list[tuple[str, int | None, Sequence[Row] | UnreadRows, int]] = []
        self._met, self._moving, self._similar = array("q"), array("q"), list[tuple[int, int]]()

    def begin(self, day: str, mode: FileMode) -> None:
        """To be called before the first row, with the date and the mode of the file."""
        self._day = day
        self._is_off = mode is FileMode.COMPARE or not (
            mode is FileMode.FULL or self._wants_moves or self._wants_similar
        )

    def add(self, key: str, row: Row) -> None:
        """Note a row and the identifier of its member."""
        named = self._file.plan_id if row.plan is None else self._plan_ids.get(row.plan)
        enrols = row.action is Action.ENROL and not row.faults
        self._add([(key, named if enrols else None, [row], 0)])

    def add_unread(self, rows: UnreadRows, keys: Sequence[str | None]) -> None:
        """Note rows of the file's plan with these identifiers; None where a row has none."""
        plan_id = self._file.plan_id
        self._add((key, plan_id, rows, position) for position, key in enumerate(keys) if key is not None)

    def _add(self, found: Iterable[tuple[str, int | None, Sequence[Row] | UnreadRows, int]]) -> None:
        if self._is_off:
            return
        self._waiting.extend(found)
        if len(self._waiting) >= LOOKUP_KEYS:
            self._look_up()

    def finish(self) -> NamedMembers:
        self._look_up()
        met = array("q", sorted(set(self._met)))
        named = {id_ for id_, _ in self._similar}.intersection(met)
        similar = [(id_, place) for id_, place in self._similar if id_ not in named]
        return NamedMembers(met, array("q", sorted(set(self._moving))), similar)

    def _look_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        keys = [key for key, *_ in waiting]
        known = self._db.ask(partial(find_known, external_ids=keys, account_id=self._file.account_id))
        new = []
        for key, plan_id, rows, position in waiting:
            member = known.get(key)
            if member is not None:
                self._met.append(member.id)
                is_open = member.expiry_date is None or member.expiry_date > self._day
                if plan_id not in (None, member.plan_id) and is_open:
                    self._moving.append(member.id)
            elif plan_id is not None:
                new.append((rows, position))
        if new and self._wants_similar:
            self._find_similar(rows.row(at) if isinstance(rows, UnreadRows) else rows[at] for rows, at in new)

    def _find_similar(self, rows: Iterable[Row]) -> None:
        people, places = [], []
        for row in rows:
            values = {name: row.values[name] for name in PERSON_FIELDS if name in row.values}
            given = parse_member(values, today=self._day).given
            if given.keys() >= PERSON_FIELDS:
                people.append({**given, "account_id": self._file.account_id})
                places.append(row.place)
        found = self._db.ask(partial(find_look_alikes, people=people, today=self._day))
        self._similar += [(id_, place) for id_, place in zip(found, places, strict=True) if id_ is not None]
