"""The brakes: a file that would take access from too many members, move, repeat or mistake them, is
held until a person approves it as a whole (docs/files.md, Decide about a held file).

Examples are a census of next year in November, a full file that lost half of its rows, a file for
another plan, a table sorted in one column only, and a sender that has renumbered its members. An
approval covers what was shown: the file is decided again, and is held again if what it does beyond
that is too much.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from frontdesk import codes, eligibility
from frontdesk.codes import Code
from frontdesk.db import Database, Tx
from frontdesk.eligibility.access_days import Loss, text_of
from frontdesk.eligibility.days import day_before
from frontdesk.eligibility.model import MemberAccess
from frontdesk.files import model, store
from frontdesk.files.actions import is_undone, overtaken_by
from frontdesk.files.check import HALF_MEMBERS, CheckResult, SimilarRow
from frontdesk.files.file_age import find_older_reason
from frontdesk.files.forecast import Forecast, ForecastPair, LossKind, Tally
from frontdesk.formats.model import FileMode
from frontdesk.plans import external_ids_of, list_plans
from frontdesk.reach import Reach

PLACEHOLDERS_PERCENT = 50  # of a column's values in the sampled rows
SHRUNK_FACTOR = 2  # a file of less than half the rows of the last one
LISTED_TOGETHER = 5000  # members, read only
KINDS_TOLD = 3  # of losses in a sentence

Item = TypeVar("Item")


class Reason(NamedTuple):
    """Why a person has to approve a file. `number` is what the sentence counts; an approval covers
    as many.
    """

    code: Code
    text: str
    number: int = 0


class Limits(NamedTuple):
    """How many are too many for an account: more than `members` and more than `percent` of all, or
    at least HALF_MEMBERS that are half of all.
    """

    members: int
    percent: int

    @classmethod
    def of(cls, settings: model.FileSettings) -> "Limits":
        return cls(settings.most_members, settings.most_percent)

    def broken_by(self, number: int, of: int) -> str:
        """The rule that the number breaks, as a sentence goes on with it; "" for none."""
        if self.is_many(number, of):
            return f"more than {self.members}, and more than {self.percent} %"
        if number >= HALF_MEMBERS and 2 * number >= of:
            return "half of them or more"
        return ""

    def is_many(self, number: int, of: int) -> bool:
        """The first rule alone."""
        return number > self.members and 100 * number > self.percent * of


class Brake(NamedTuple):
    """The limits of the account, and the numbers, by code, that the file's approval covers."""

    limits: Limits
    covered: Mapping[str, int]

    @classmethod
    def of(cls, settings: model.FileSettings, file: model.EligibilityFile) -> "Brake":
        return cls(Limits.of(settings), file.shown or {} if file.approved else {})

    def broken_by(self, code: Code, number: int, of: int) -> str:
        """The rule that the number breaks beyond what is covered; "" for none."""
        beyond = number - self.covered.get(code, 0)
        return self.limits.broken_by(number, of) if self.limits.broken_by(beyond, of) else ""


class ApprovalNeeded(Exception):
    """A person has to approve the file. `code` is that of the first reason, `detail` has all."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        self.code = reasons[0].code
        self.detail = " ".join(reason.text for reason in reasons)
        super().__init__(self.code, self.detail)


def find_reasons(
    tx: Tx, *, file: model.EligibilityFile, check: CheckResult, tally: Tally, today: str
) -> list[Reason]:
    """The reasons why a person has to approve the file, without those that its approval covers."""
    # An approved change file is applied: of members that were changed since, its rows are refused.
    is_approved_change = file.approved and check.mode is FileMode.CHANGE
    overtaken = "" if is_approved_change else overtaken_by(tx, file)
    if overtaken:
        return [Reason(codes.files.OVERTAKEN, overtaken)]
    brake = Brake.of(store.get_file_settings(tx, file.account_id), file)
    reasons = []
    is_old = codes.files.OLDER_THAN_APPLIED in brake.covered
    older = "" if is_old else find_older_reason(tx, file)
    if older:
        reasons.append(Reason(codes.files.OLDER_THAN_APPLIED, older))
    reasons += _reasons_of_rows(file.rows_total or 0, check, tally, brake)
    reasons += reasons_of_losses(tx, file, tally, brake.limits, today)
    if check.mode is FileMode.FULL:
        reasons += _reasons_of_full_file(tx, file, check, tally, brake)
    return reasons


def _reasons_of_rows(rows: int, check: CheckResult, tally: Tally, brake: Brake) -> list[Reason]:
    reasons = []
    limits = brake.limits
    moved = tally.moved
    # A small plan may be moved as a whole.
    if limits.is_many(moved - brake.covered.get(codes.files.TOO_MANY_MOVES, 0), rows):
        rule = limits.broken_by(moved, rows)
        text = f"{moved} of the file's {rows} rows would move members here from other plans"
        reasons.append(Reason(codes.files.TOO_MANY_MOVES, f"{text}: {rule}.", moved))
    others = tally.other_people
    if rule := brake.broken_by(codes.files.TOO_MANY_OTHER_PEOPLE, others, rows):
        text = f"{others} of the file's {rows} rows describe other people than the stored members "
        text += f"with their identifiers, or give them other last names: {rule}. The rows may have "
        text += "shifted against the identifiers, or two senders use the same numbers."
        reasons.append(Reason(codes.files.TOO_MANY_OTHER_PEOPLE, text, others))
    similar = len(check.similar)
    if rule := brake.broken_by(codes.files.TOO_MANY_SIMILAR, similar, rows):
        text = _similar_text(check.similar, rows, rule)
        reasons.append(Reason(codes.files.TOO_MANY_SIMILAR, text, similar))
    for field, found, of in check.placeholders:
        most = max(of * PLACEHOLDERS_PERCENT // 100, limits.members)
        if found > most and codes.files.TOO_MANY_PLACEHOLDERS not in brake.covered:
            text = f"{found} of the first {of} values of {field} stand for none, such as "
            text += "none@none.com or 0000000000, and would be left out."
            reasons.append(Reason(codes.files.TOO_MANY_PLACEHOLDERS, text, found))
    return reasons


def _similar_text(similar: Sequence[SimilarRow], rows: int, rule: str) -> str:
    number = len(similar)
    text = f"{number} of the file's {rows} rows would create members who look like stored ones "
    text += f"that it omits: {rule}. "
    respelt = sum(each.is_respelt for each in similar)
    if respelt:
        text += f"The identifiers of {respelt} differ by zeros, letter case or punctuation only. "
    return text + "If the sender renumbered them, rename the stored members first."


def reasons_of_losses(
    tx: Tx, file: model.EligibilityFile, tally: Tally, limits: Limits, today: str
) -> list[Reason]:
    """The reason if too many members would lose access, in one plan or in all of the account's,
    beyond those that a person has seen.
    """
    if tally.unseen.total() < HALF_MEMBERS and tally.unseen.total() <= limits.members:
        return []
    code = codes.files.TOO_MANY_LOSE_ACCESS
    count = partial(eligibility.count_members_open_after, tx, day=day_before(today))
    names = external_ids_of(tx, tally.losses.keys())
    texts = []
    for plan_id, kinds in sorted(tally.losses.items()):
        of = count(plan_id=plan_id)
        if limits.broken_by(tally.unseen[plan_id], of):
            whose = f"members with access under plan {names.get(plan_id, plan_id)}"
            texts.append(_loss_text(kinds, of, whose, limits))
    if not texts:
        plans = list_plans(tx, Reach.of(file.account_id))
        of = sum(count(plan_id=plan.id) for plan in plans)
        if limits.broken_by(tally.unseen.total(), of):
            kinds = sum(tally.losses.values(), Counter[LossKind]())
            whose = "members with access under all plans of the account"
            texts.append(_loss_text(kinds, of, whose, limits))
    return [Reason(code, " ".join(texts), tally.lost)] if texts else []


def _loss_text(kinds: Counter[LossKind], of: int, whose: str, limits: Limits) -> str:
    number = kinds.total()
    told = [f"{count} {_days_of(kind)}" for kind, count in kinds.most_common(KINDS_TOLD)]
    rest = number - sum(count for _, count in kinds.most_common(KINDS_TOLD))
    if rest:
        told.append(f"{rest} on other days")
    rule = limits.broken_by(number, of)
    return f"{number} of the {of} {whose} would lose it ({rule}): {', '.join(told)}."


def _days_of(kind: LossKind) -> str:
    if kind.returns:
        return f"from {kind.first_day} to {day_before(kind.returns)} {kind.cause.of_many}"
    return f"from {kind.first_day} on {kind.cause.of_many}"


def _reasons_of_full_file(
    tx: Tx, file: model.EligibilityFile, check: CheckResult, tally: Tally, brake: Brake
) -> list[Reason]:
    reasons = []
    rows = file.rows_total or 0
    before = file.members_before or 0
    later = tally.later_begins
    if rule := brake.broken_by(codes.files.BEGINS_LATER, later, before):
        text = f"{later} rows begin after today, for members who have access today, of the plan's "
        text += f"{before}: {rule}. If the file is the list of a later day, load it with the mode "
        text += "change, and the full one on its day."
        reasons.append(Reason(codes.files.BEGINS_LATER, text, later))
    missing = tally.missing
    if not missing or codes.files.TOO_MANY_ENDS in brake.covered:
        return reasons
    last_rows = _last_full_rows(tx, file)
    text = f"{missing} of the plan's {before} members would be ended"
    if rows * SHRUNK_FACTOR < (before if last_rows is None else last_rows):
        of = f"{before} members" if last_rows is None else f"{last_rows} rows of the last full one"
        text += f", and the file has {rows} rows, less than half of the {of}."
        reasons.append(Reason(codes.files.TOO_MANY_ENDS, text, missing))
    elif nameless := check.unnamed + tally.nameless:
        text += (
            f". {nameless} refused rows don't say whose they are, by a readable external_id or by "
        )
        text += "both names; they may be theirs."
        reasons.append(Reason(codes.files.TOO_MANY_ENDS, text, missing))
    return reasons


def _last_full_rows(tx: Tx, file: model.EligibilityFile) -> int | None:
    """How many rows the plan's last full file had that was not undone."""
    for file_id, rows in store.list_full_files(tx, file.plan_id, before_id=file.id):
        if not is_undone(tx, file_id):
            return rows
    return None


def list_affected(
    db: Database, check: CheckResult, forecast: Forecast | None
) -> Iterator[Sequence[model.RowOutcome]]:
    """The lines of a held file about the members and rows for which it is held, in batches."""
    if forecast is not None:
        yield from _batches(map(_would_move, forecast.moves()), LISTED_TOGETHER)
    # Of several rows that look like the member, the first one.
    rows = {each.member_id: each.place for each in reversed(check.similar)}
    for members in _find_members(db, sorted(rows)):
        yield [_would_be_similar(member, rows[member.id]) for member in members]
    if forecast is not None:
        yield from _batches(forecast.lines(), LISTED_TOGETHER)
        yield from list_losses(forecast)


def list_losses(forecast: Forecast) -> Iterator[Sequence[model.RowOutcome]]:
    """The lines about the members that lose access, in batches."""
    losses = (_would_lose(pair, loss) for pair, loss in forecast.losses())
    yield from _batches(losses, LISTED_TOGETHER)


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    remaining = iter(items)
    while together := [*islice(remaining, size)]:
        yield together


def _find_members(db: Database, ids: Sequence[int]) -> Iterator[Sequence[MemberAccess]]:
    for together in _batches(ids, LISTED_TOGETHER):
        yield db.ask(partial(eligibility.find_access, ids=together))


def _line(
    pair: ForecastPair, outcome: str, faults: Iterable[tuple[str, str, str]]
) -> model.RowOutcome:
    before, after = pair.access
    return model.RowOutcome(
        place=pair.place,
        external_id=pair.external_id,
        outcome=outcome,
        member_id=pair.member_id,
        faults=[*faults],
        access=(text_of(before), text_of(after), False, False),
    )


def _would_move(pair: ForecastPair) -> model.RowOutcome:
    fault = ("plan", codes.rows.LEAVES_PLAN, codes.rows.LEAVES_PLAN.sentence)
    return _line(pair, model.WOULD_MOVE, [fault])._replace(left_plan_id=pair.plan_id)


def _would_lose(pair: ForecastPair, loss: Loss) -> model.RowOutcome:
    if loss.last_day:
        message = f"The last day of access would be {loss.last_day}"
    else:
        message = f"There would be no access on {loss.first_day}, and none before"
    message += f", {pair.cause.of_one}."
    if loss.returns:
        message += f" It would return on {loss.returns}."
    fault = ("expiry_date", codes.rows.LOSES_ACCESS, message)
    return _line(pair, model.WOULD_LOSE, [fault])


def _would_be_similar(member: MemberAccess, row_number: int) -> model.RowOutcome:
    message = f"Row {row_number} would create a member who looks like this one."
    return model.RowOutcome(
        place=None,
        external_id=member.external_id,
        outcome=model.WOULD_BE_SIMILAR,
        member_id=member.id,
        faults=[("external_id", codes.warnings.SIMILAR_MEMBER, message)],
    )
