"""The check of a file before its first row is applied: the first reading, and the brakes.

The check reads the whole file and looks up its stored members. The file is held if it would end, move or repeat too many
members, as with a full file that lost half of its rows, a file for another plan, or a sender that has renumbered its members.
The same limit applies to all three, and a person approves a file as a whole (docs/files.md)."""

import hmac
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice, pairwise

from frontdesk import eligibility
from frontdesk.db import Database, Tx, sets
from frontdesk.eligibility.decide import BEFORE_ABSENCE, OPEN
from frontdesk.eligibility.model import Action, MemberAccess, Submission
from frontdesk.eligibility.persons import PERSON_FIELDS
from frontdesk.files import model, store
from frontdesk.files.actions import PART_BYTES, overtaken_by
from frontdesk.files.claims import FileClaim, GoOn, reading_ahead
from frontdesk.files.families import FamilyRecogniser, KnownRows
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.model import FileHeader, ReadItem, Row, UnreadRows, keys_of, read_loops, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import PLAIN, parse_mapping
from frontdesk.mapping.x12 import X12Options
from frontdesk.plans import list_plans
from frontdesk.plans.model import Plan
from frontdesk.text import are_mostly_ssns

DENSE_ROWS = 10_000  # a smaller file may have more rows than bytes, compressed
SAMPLED_ROWS = 200  # rows with identifiers to look at
LOOKUP_KEYS = 2000
ENDED_TOGETHER = 250  # members; SQLite has one writer, for which other writes wait
LISTED_TOGETHER = 5000  # members, read only
# Of the plan's open members for ends, else of the file's rows; and at least so many members.
THRESHOLD_PERCENT, THRESHOLD_MEMBERS = 10, 25
SHRUNK_FACTOR = 2  # a file of less than half the rows of the last one
_STORED = (
    "Most values of {0} look like social security numbers, which would be stored and shown as they are. Make {0} from another "
    'column. If these are no social security numbers, or are to be stored as they are, say "ssn": "plain" in the mapping.'
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of the first reading. `mode` is the caller's, else the file's; `unnamed` counts the rows without a readable
    identifier. `met` are the ids of the stored members in the file, `moving` those that would leave another plan, both in order;
    `similar` has, for each new member that resembles a stored member which the file omits, the stored member's id and the row's
    place. `contradictory` are the hashes of identifiers on differing rows of a table. Of an 834 `apart` are the places of rows
    whose member has other rows elsewhere in the file, and `families` recognises families by their text; None if a row needs
    another family.
    """

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    unnamed: int
    met: Sequence[int]
    moving: Sequence[int]
    similar: Sequence[tuple[int, int]]
    contradictory: frozenset[int]
    apart: Sequence[int]
    families: FamilyRecogniser | None


def check_file(claim: FileClaim) -> CheckResult:
    """The result of the first reading. Raises Unreadable, Stopped, LostClaim."""
    check = _FileCheck(claim.db, claim.file)
    with reading_ahead(
        check.read, claim.running, look_up=lambda: claim.checkpoint(model.FileStep.CHECK, check.rows)
    ) as results:
        [result] = results
    return result


class _FamiliesDepend(Exception):
    """A row of the file needs another family, or a member is in two of them."""


class _StoredContent:
    """The content as a stream that holds one part at a time. `read` calls `go_on` and raises what it raises."""

    def __init__(self, db: Database, file_id: int, go_on: GoOn) -> None:
        parts = (db.ask(partial(store.find_part, file_id=file_id, number=number)) for number in count())
        self._parts, self._go_on, self._left = parts, go_on, memoryview(b"")

    def read(self, size: int = PART_BYTES, /) -> bytes:
        """At most `size` bytes, none at the end."""
        self._go_on()
        if not self._left and (part := next(self._parts)) is not None:
            self._left = memoryview(zlib.decompress(part))
        data, self._left = self._left[:size], self._left[size:]
        return bytes(data)


def open_rows(
    db: Database, file: model.EligibilityFile, go_on: GoOn, *, apart: Sequence[int] = ()
) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The stored file's header and rows, from its beginning (open_unread). Calls `go_on` at each piece of the content, and while
    there is no row. Raises Unreadable, here or from the rows."""
    content, mapping = _StoredContent(db, file.id, go_on), parse_mapping(file.mapping or {})
    # The account's secret for hashes in its 834s, which stays the same.
    label = f"834 of account {file.account_id}".encode()
    secret = hmac.digest(db.ask(sets.installation_key), label, "sha256")
    x12 = X12Options(file.asked_mode, secret, apart)
    encoding = file.encoding or "utf-8"
    return open_unread(content, file.format, encoding, mapping, x12=x12, go_on=go_on)


class _FileCheck:
    """The first reading of one file. `rows` is its progress."""

    def __init__(self, db: Database, file: model.EligibilityFile) -> None:
        self._db, self._file = db, file
        self.rows = 0

    def read(self, go_on: GoOn) -> Generator[CheckResult]:
        """Yields the result."""
        self._go_on = go_on
        is_begun = self._file.rows_done > 0 and not self._file.dry_run
        try:
            yield self._result(by_family=not is_begun)
        except _FamiliesDepend:
            yield self._result(by_family=False)

    def _result(self, *, by_family: bool) -> CheckResult:
        """Raises _FamiliesDepend if families can't be recognised separately."""
        header, items = open_rows(self._db, self._file, self._go_on)
        mode, day = header.mode or self._file.mode, header.file_date or f"{self._file.created_at:%Y-%m-%d}"
        plans = self._db.ask(lambda tx: list_plans(tx, self._file.account_id))
        families = None
        if by_family and header.format is Format.X12 and mode is not FileMode.COMPARE:
            families = FamilyRecogniser(self._db, self._file, plans)
            families.make_index()
        is_needed = mode is FileMode.FULL or families is not None
        members = _MemberLookup(self._db, self._file, plans, day, is_needed=is_needed)
        identifiers, sample, unnamed = _IdentifierIndex(), list[Row](), 0
        self.rows = 0
        for item in families.recognised(items) if families else read_loops(items):
            self._go_on()
            self.rows += 1 if isinstance(item, Row) else len(item)
            if self.rows > max(self._file.size_bytes, DENSE_ROWS):
                # A million identifiers alone, compressed, take two bytes each.
                raise Unreadable("zip_bomb", "The file has more rows than bytes: no list of members does.")
            if isinstance(item, KnownRows):
                members.known.extend(item.member_ids)
                continue
            if isinstance(item, Row) and item.skipped:
                continue
            if families and isinstance(item, Row) and item.leans_on_other:
                raise _FamiliesDepend
            if len(sample) < SAMPLED_ROWS:
                sample += islice(read_rows([item]), SAMPLED_ROWS - len(sample))
            keys = keys_of(item)
            unnamed += keys.count(None)
            if mode is not FileMode.COMPARE:
                members.add(item, keys)
            identifiers.add(item, keys)
        differing, apart, rows = identifiers.differing(), array("Q"), self.rows
        if header.format is Format.X12:
            apart, people = self._rows_apart(differing)
            differing, rows = frozenset(), rows - len(apart) + people  # the rows of a member become one
        else:
            self._check_ssns(sample)
            differing = self._still_differing(differing)
        families = None if apart else families
        return CheckResult(header, rows, mode, day, unnamed, *members.finish(), differing, apart, families)

    def _check_ssns(self, sample: Sequence[Row]) -> None:
        """Raises Unreadable if identifiers of a table look like social security numbers, unless its mapping wants them."""
        if parse_mapping(self._file.mapping or {}).ssn == PLAIN:
            return
        for name in ("external_id", "member_id"):
            values = [text for row in sample if isinstance(text := row.values.get(name), str)]
            texts = [*filter(None, map(str.strip, values))]
            if texts and are_mostly_ssns(texts):
                raise Unreadable("looks_like_ssn", _STORED.format(name))

    def _still_differing(self, differing: frozenset[int]) -> frozenset[int]:
        """Rows of one identifier with different texts may be equal once parsed: parse them."""
        read = _IdentifierIndex()
        for key, row in self._rows_of(differing):
            read.add(row, [key])
        return read.differing()

    def _rows_apart(self, differing: frozenset[int]) -> tuple["array[int]", int]:
        """The places of the rows of an 834 of members with differing rows, in order, and the number of these members."""
        places, members = array("Q"), set[int]()
        for key, row in self._rows_of(differing):
            places.append(row.place)
            members.add(hash(key))
        return array("Q", sorted(places)), len(members)

    def _rows_of(self, wanted: frozenset[int]) -> Iterator[tuple[str, Row]]:
        """Each row of these identifiers, with its identifier. Reads the file only if there are any."""
        items = open_rows(self._db, self._file, self._go_on)[1] if wanted else ()
        for item in read_loops(items):
            for position, key in enumerate(keys_of(item)):
                if key is not None and hash(key) in wanted:
                    yield key, item.row(position)


def _hash_of(row: Row) -> int:
    """Equal for equal rows, in any order of their fields."""
    try:
        values = hash(frozenset(row.values.items()))
    except TypeError:  # metadata is an object
        values = hash(repr(sorted(row.values.items())))
    return hash((values, row.action, row.plan, row.faults != (), row.context.person))


class _IdentifierIndex:
    """Finds the identifiers with differing rows, in 16 bytes a row.

    Identifiers and rows are stored as 64-bit hashes: two of a million identifiers collide once in forty million files.
    """

    def __init__(self) -> None:
        self._keys, self._rows = array("q"), array("q")

    def add(self, item: Row | UnreadRows, keys: Sequence[str | None]) -> None:
        row_hashes = map(hash, item.texts) if isinstance(item, UnreadRows) else [_hash_of(item)]
        for key, row_hash in zip(keys, row_hashes, strict=True):
            if key is not None:
                self._keys.append(hash(key))
                self._rows.append(row_hash)

    def differing(self) -> frozenset[int]:
        keys, rows = self._keys, self._rows
        in_order = array("I", sorted(range(len(keys)), key=keys.__getitem__))
        equal = ((one, other) for one, other in pairwise(in_order) if keys[one] == keys[other])
        return frozenset(keys[one] for one, other in equal if rows[one] != rows[other])


class _MemberLookup:
    """Looks up the members of a file's rows, refused rows too, as far as the brakes need it."""

    def __init__(
        self, db: Database, file: model.EligibilityFile, plans: Sequence[Plan], day: str, *, is_needed: bool
    ) -> None:
        self._db, self._file, self._day = db, file, day
        self._plan_ids = {None: file.plan_id} | {plan.external_id: plan.id for plan in plans}
        is_decided = file.approved or (file.rows_done > 0 and not file.dry_run)
        # Fewer members can't trigger a brake.
        plan_ids = [plan.id for plan in plans]
        some = partial(eligibility.has_members, plan_ids=plan_ids, count=THRESHOLD_MEMBERS + 1)
        self._wants_similar = not is_decided and db.ask(some)
        self._is_off = not (is_needed or self._wants_similar or (len(plans) > 1 and not is_decided))
        self._waiting: list[tuple[str, int | None, Row | UnreadRows, int]] = []
        self._met, self._moving, self._similar = array("q"), array("q"), list[tuple[int, int]]()
        self.known = array("q")  # of members whose rows were recognised with their families

    def add(self, item: Row | UnreadRows, keys: Sequence[str | None]) -> None:
        """Note rows and the identifiers of their members; None where a row has none."""
        if self._is_off:
            return
        plan_id: int | None = self._file.plan_id
        if isinstance(item, Row):
            enrols = item.action is Action.ENROL and not item.faults
            plan_id = self._plan_ids.get(item.plan) if enrols else None
            keys = [*keys, item.context.former_id]
        self._waiting += [(key, plan_id, item, position) for position, key in enumerate(keys) if key]
        if len(self._waiting) >= LOOKUP_KEYS:
            self._look_up()

    def finish(self) -> tuple[Sequence[int], Sequence[int], Sequence[tuple[int, int]]]:
        """`met`, `moving` and `similar` of the CheckResult. Raises _FamiliesDepend for a member in two families."""
        self._look_up()
        read = set(self._met)
        met, moving = array("q", sorted(read.union(self.known))), array("q", sorted(set(self._moving)))
        if len(met) < len(read) + len(self.known):
            raise _FamiliesDepend
        named = {id_ for id_, _ in self._similar}.intersection(met)
        return met, moving, [(id_, place) for id_, place in self._similar if id_ not in named]

    def _look_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        keys = [key for key, *_ in waiting]
        find = partial(eligibility.find_known, external_ids=keys, account_id=self._file.account_id)
        known = self._db.ask(find)
        new = []
        for key, plan_id, item, position in waiting:
            member = known.get(key)
            if member is not None:
                self._met.append(member.id)
                is_elsewhere = plan_id not in (None, member.plan_id)
                if is_elsewhere and (member.expiry_date is None or member.expiry_date > self._day):
                    self._moving.append(member.id)
            elif plan_id is not None and self._wants_similar:
                new.append(item.row(position))
        if new:
            self._find_similar(new)

    def _find_similar(self, rows: Iterable[Row]) -> None:
        people, places = [], []
        for row in rows:
            values = {name: row.values[name] for name in PERSON_FIELDS if name in row.values}
            given = eligibility.parse_member(values, today=self._day).given
            if given.keys() >= PERSON_FIELDS:
                people.append({**given, "account_id": self._file.account_id})
                places.append(row.place)
        found = self._db.ask(partial(eligibility.find_look_alikes, people=people, today=self._day))
        self._similar += [(id_, place) for id_, place in zip(found, places, strict=True) if id_ is not None]


class ApprovalNeeded(Exception):
    """A person has to approve the file. The arguments are the code of the first reason, and all reasons."""


def hold_if_needed(claim: FileClaim, check: CheckResult) -> None:
    """Raise ApprovalNeeded if a person has to approve the file. The report then lists the affected members.

    The members that a full file would end are counted, and listed in a dry run.
    """
    missing = 0
    if check.mode is FileMode.FULL:
        missing = sum(map(len, _missing(claim, check)))
        if claim.file.members_missing is None:
            claim.update(members_missing=missing)
    reasons = claim.db.ask(partial(_reasons, file=claim.file, check=check, missing=missing))
    if reasons:
        places = dict(reversed(check.similar))  # of the first row that looks like the member
        _list(claim, _accesses(claim, check.moving), _would_move)
        _list(claim, _accesses(claim, sorted(places)), partial(_would_be_similar, places=places))
    if missing and (reasons or claim.file.dry_run):
        _list(claim, _missing(claim, check), partial(_would_end, check=check))
    if reasons:
        raise ApprovalNeeded(reasons[0][0], " ".join(text for _, text in reasons))


def end_missing(
    claim: FileClaim, check: CheckResult, write: Callable[[Sequence[model.ChunkItem]], None]
) -> None:
    """End the plan's members that the file omits: their expiry_date becomes the file's date.

    It is never before effective_date (docs/interface.md, Fields of a member): access that begins later ends on its first day,
    with a warning. A member that was changed after the file was started is not ended: the change is newer than the file.
    Members that are ended already are not selected again, so another worker can continue after a kill."""
    ended = 0
    for batch in _missing(claim, check):
        for start in range(0, len(batch), ENDED_TOGETHER):
            claim.checkpoint(model.FileStep.END, ended + start)
            some = batch[start : start + ENDED_TOGETHER]
            write([_ending(claim.file, member, check) for member in some])
        ended += len(batch)


def _reasons(
    tx: Tx, *, file: model.EligibilityFile, check: CheckResult, missing: int
) -> list[tuple[str, str]]:
    """The reasons why a person has to approve the file, by code."""
    if reason := overtaken_by(tx, file):
        return [("overtaken", reason)]
    if file.approved:
        return []
    rows, before, found = file.rows_total or 0, file.members_before or 0, []
    of_rows = f"of the file's {rows} rows would"
    if rule := _broken_rule(moving := len(check.moving), rows):
        found.append(("too_many_moves", f"{moving} {of_rows} move members here from other plans, {rule}."))
    if rule := _broken_rule(similar := len(check.similar), rows):
        text = f"{similar} {of_rows} create members who look like stored ones that it omits, {rule}."
        remedy = "If the sender renumbered them: frontdesk member rename --csv"
        found.append(("too_many_similar", f"{text} {remedy}"))
    last = store.last_full_rows(tx, file.plan_id, file.id) if missing else None
    if rule := _broken_rule(missing, before):
        rule = f", {rule}."
    elif last is not None and rows * SHRUNK_FACTOR < last:
        rule = f", and the file has {rows} rows, less than half of the {last} of the last full one."
    elif missing and check.unnamed:
        rule = f". The external_id of {check.unnamed} rows can't be read; they may be theirs."
    if rule:
        found.append(("too_many_ends", f"{missing} of the plan's {before} members would be ended{rule}"))
    return found


def _broken_rule(number: int, of: int) -> str:
    share = of * THRESHOLD_PERCENT // 100
    if number <= max(share, THRESHOLD_MEMBERS):
        return ""
    least = f"{THRESHOLD_PERCENT} % of {of}" if share >= THRESHOLD_MEMBERS else str(THRESHOLD_MEMBERS)
    return f"more than {least}"


def _missing(claim: FileClaim, check: CheckResult) -> Iterator[Sequence[MemberAccess]]:
    """The members to end, in batches. Each batch is read before the previous one is written."""
    after = found = 0
    under = partial(eligibility.list_ids_under, plan_id=claim.file.plan_id, limit=LISTED_TOGETHER)
    while True:
        claim.checkpoint(model.FileStep.END, found)
        if not (ids := claim.db.ask(partial(under, after_id=after))):
            return
        # Most files list nearly all members, so few are read.
        named = check.met[bisect_left(check.met, ids[0]) : bisect_right(check.met, ids[-1])]
        omitted = sorted({*ids}.difference(named))
        if batch := claim.db.ask(partial(_to_end, ids=omitted, file=claim.file, check=check)):
            yield batch
        after, found = ids[-1], found + len(batch)


def _to_end(
    tx: Tx, ids: Sequence[int], *, file: model.EligibilityFile, check: CheckResult
) -> list[MemberAccess]:
    batch = [
        member
        for member in eligibility.find_access(tx, ids)
        if (member.expiry_date is None or member.expiry_date > _last_day(member, check))
        and (file.started_at is None or member.updated_at <= file.started_at)
    ]
    # The file created them, and the clock of another worker may be behind.
    written = eligibility.find_written(tx, [member.id for member in batch], file.id) if batch else set()
    return [member for member in batch if member.id not in written]


def _accesses(claim: FileClaim, ids: Sequence[int]) -> Iterator[Sequence[MemberAccess]]:
    for start in range(0, len(ids), LISTED_TOGETHER):
        claim.checkpoint(model.FileStep.APPLY, 0)
        yield claim.db.ask(partial(eligibility.find_access, ids=ids[start : start + LISTED_TOGETHER]))


def _list(
    claim: FileClaim,
    batches: Iterable[Sequence[MemberAccess]],
    outcome_of: Callable[[MemberAccess], model.RowOutcome],
) -> None:
    """List in the report how the file would affect the members."""
    for batch in batches:
        with claim.db.write() as tx:
            claim.save_chunk(tx, [*map(outcome_of, batch)], rows_done=0)
        claim.refresh()


def _would_move(member: MemberAccess) -> model.RowOutcome:
    fault = ("plan", "leaves_plan", f"The member would leave plan {member.plan_id}.")
    key, plan_id = member.external_id, member.plan_id
    return model.RowOutcome(None, key, model.WOULD_MOVE, member.id, [fault], left_plan_id=plan_id)


def _would_be_similar(member: MemberAccess, *, places: dict[int, int]) -> model.RowOutcome:
    message = f"Row {places[member.id]} would create a member who looks like this one."
    fault = ("external_id", "similar_member", message)
    return model.RowOutcome(None, member.external_id, model.WOULD_BE_SIMILAR, member.id, [fault])


def _would_end(member: MemberAccess, *, check: CheckResult) -> model.RowOutcome:
    warnings = [(model.WARNED_FIELDS[code], code) for code in _warnings(member, check)]
    key, changed = member.external_id, ("expiry_date",)
    return model.RowOutcome(None, key, model.WOULD_END, member.id, (), warnings, changed)


def _last_day(member: MemberAccess, check: CheckResult) -> str:
    return max(check.file_date, member.effective_date)


def _warnings(member: MemberAccess, check: CheckResult) -> Sequence[str]:
    return () if _last_day(member, check) == check.file_date else ("ends_on_first_day",)


def _ending(file: model.EligibilityFile, member: MemberAccess, check: CheckResult) -> model.ChunkRow:
    key, plan_id, day = member.external_id, file.plan_id, _last_day(member, check)
    record = eligibility.parse_member({"external_id": key, "expiry_date": day}, today=check.file_date)
    record.given[BEFORE_ABSENCE] = member.expiry_date or OPEN
    by = (file.client, file.request_id, Action.END, file.id, file.started_at)
    submission = Submission(file.account_id, plan_id, record, *by)
    return model.ChunkRow(None, key, submission, _warnings(member, check))
