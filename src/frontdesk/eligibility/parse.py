"""Parses an untrusted JSON object into a record with all its faults. `decide` adds the faults that depend on other records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frontdesk.eligibility.fields import DROPPED, FIELDS, REQUIRED, Field
from frontdesk.eligibility.model import WARNING_MARK, MemberRecord
from frontdesk.eligibility.values import FieldContext
from frontdesk.errors import Fault, unknown_faults
from frontdesk.text import Rejected, RejectedParts, fold_email, parse_text, trimmed

_LONGEST_ID = 255
_REQUIRED = frozenset(REQUIRED)
_ORDER = {name: position for position, name in enumerate(FIELDS)}


class ValueCache:
    """Stored forms of values that were read before, by field: a file of a million members has few cities, dates and plans.

    It keeps at most LARGEST values of a field, and none that brought a fault or a warning.
    """

    LARGEST = 20_000

    def __init__(self) -> None:
        self.by_field: dict[str, dict[object, Any]] = {name: {} for name in FIELDS if name not in _OWN}


# Fields with a value of its own for each member, or without text.
_OWN = {"external_id", "member_id", "email", "phone", "metadata"}


def parse_member(
    body: Mapping[str, object],
    *,
    today: str,
    strict: bool = False,
    lenient: bool = False,
    cache: ValueCache | None = None,
) -> MemberRecord:
    """Read every field of the body (docs/interface.md, Eligible members). Never raises; `today` is `YYYY-MM-DD`.

    Unknown fields are named in `ignored`, and are faults too when `strict`. Absent fields stay out of `given`,
    and so do fields of DROPPED that can't be used when `lenient`: they are warned of. A `cache` speeds
    up reading many records on one day.
    """
    context = FieldContext(today)
    given: dict[str, Any] = {}
    faults: list[Fault] = []
    ignored: list[str] = []
    for name, value in body.items():
        kept = cache.by_field.get(name) if cache is not None and type(value) is str else None
        if kept and (read := kept.get(value)) is not None:
            given[name] = read
            continue
        field = FIELDS.get(name)
        if field is None:
            ignored.append(name)
            continue
        try:
            read = given[name] = _read(field, value, context)
            if (
                kept is not None
                and len(kept) < ValueCache.LARGEST
                and read is not None
                and not context.warnings
            ):
                kept[value] = read
        except (Rejected, RejectedParts) as rejected:
            if lenient and name in DROPPED:
                [(_, _, message), *_] = _faults(name, rejected)
                context.warnings.append(f"{name}_dropped{WARNING_MARK}{message}")
            else:
                faults += _faults(name, rejected)
    if "external_id" not in body:
        faults.append(Fault("external_id", "required", "is required: it is the match key"))
    if strict:
        faults += unknown_faults(ignored)
    return _record(given, faults=faults, ignored=ignored, context=context)


def _read(field: Field, value: Any, context: FieldContext) -> Any:
    """The stored form of a field; None clears it. Raises Rejected, RejectedParts."""
    if value is None or (type(value) is str and not value[:1].isalnum() and not trimmed(value)):
        if field.required:
            raise Rejected("required", "must not be null or blank")
        return None
    return field.kind.read(value, context)


def read_external_id(value: object) -> str | None:
    """The match key in its stored form; None when it is missing or not valid."""
    try:
        return parse_text(value, limit=_LONGEST_ID) or None if type(value) is str else None
    except Rejected:
        return None


def read_external_ids(values: Sequence[str | None]) -> Sequence[str | None]:
    """`read_external_id` of each. Plain ones, as nearly all are, are checked together."""
    if None not in values and all(values):
        text = "".join(values)  # type: ignore[arg-type]
        if text.isascii() and text.isprintable() and " " not in text and max(map(len, values)) <= _LONGEST_ID:  # type: ignore[arg-type]
            return values
    return [*map(read_external_id, values)]


def missing_on_create(record: MemberRecord, causes: Iterable[Fault] = ()) -> list[Fault]:
    """A fault for each required field that is absent and has no fault yet; `causes` stand for those of their fields."""
    if record.given.keys() >= _REQUIRED:
        return []
    at_fault = {fault.field for fault in record.faults}
    known = {cause.field: cause for cause in causes}
    return [
        known.get(name) or Fault(name, "required", "is required for a new member")
        for name in REQUIRED
        if name not in record.given and name not in at_fault
    ]


def check_dates(effective_date: str | None, expiry_date: str | None) -> Fault | None:
    """The fault of dates in the wrong order. Both days are inclusive, so equal dates are fine."""
    if effective_date is not None and expiry_date is not None and expiry_date < effective_date:
        return Fault("expiry_date", "expiry_before_effective", "must not be before effective_date")
    return None


def in_field_order(faults: list[Fault]) -> list[Fault]:
    """The faults in the order of the field table; unknown fields last."""
    return sorted(faults, key=lambda fault: _ORDER.get(fault.field.partition(".")[0], len(_ORDER)))


def _faults(name: str, rejected: Rejected | RejectedParts) -> list[Fault]:
    parts = rejected.parts if isinstance(rejected, RejectedParts) else (rejected,)
    return [Fault(f"{name}.{part.part}" if part.part else name, part.code, part.message) for part in parts]


def _record(
    given: dict[str, Any], *, faults: Sequence[Fault], ignored: Sequence[str], context: FieldContext
) -> MemberRecord:
    """The record, with the columns that follow from its fields."""
    if "email" in given:
        given["email_folded"] = None if given["email"] is None else fold_email(given["email"])
    if "metadata" in given and given["metadata"] is None:
        given["metadata"] = {}
    asked = bool(given.pop("invite_immediately", False))
    return MemberRecord(
        given.get("external_id"), given, asked, tuple(faults), tuple(context.warnings), tuple(ignored)
    )
