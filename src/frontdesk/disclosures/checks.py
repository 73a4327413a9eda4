"""Compares what a caller says with the record of a person."""

import hmac
import math
import re
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256

from frontdesk import audit, codes
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.db.sets import lock_name
from frontdesk.disclosures import store
from frontdesk.disclosures.model import (
    CHECKS_AN_HOUR,
    HOUR,
    CallersChecks,
    CallersWords,
    CheckAnswer,
    CheckedField,
    Disclosure,
    DisclosureKind,
    Holder,
    counted_times,
)
from frontdesk.eligibility.same_person import last_name_spellings, spellings
from frontdesk.eligibility.search import get_kept
from frontdesk.errors import Fault, Invalid, RateLimited
from frontdesk.reach import Reach
from frontdesk.text import Rejected, fold_email, parse_text

LONGEST_WORDS = 254

_AMERICAN_DATE = re.compile("([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})")
_NO_DIGITS = re.compile("[^0-9]+")
_ZIP_DIGITS = 5


def check_answer(tx: Tx, requester: Requester, reach: Reach, said: CallersWords) -> CheckAnswer:
    """Compare what a caller says with the record, as the service compares: names without letter
    case, accents and signs, a phone by its digits, a zip code by five digits unless both have nine.

    The trail records the field and the result (`member.checked`), not the words. Raises NotFound;
    Invalid for a text of more than 254 characters or of none, or a birth date that is no date; and
    RateLimited after 10 checks of the person within an hour, by whomever.
    """
    member = get_kept(tx, reach, said.member_id)
    field = said.field
    words = _folded(field, _words(said.text), is_said=True)
    _refuse_above_limit(tx, requester, member["id"])
    value = member[field]
    stored = frozenset[str]() if value is None else _folded(field, value)
    if field is CheckedField.ZIPCODE:
        words, stored = _same_length(words, stored)
    result = CheckAnswer.MATCHES if _agree(words, stored) else CheckAnswer.DIFFERS
    check = Disclosure(
        member["id"],
        requester.actor,
        DisclosureKind.CHECKED,
        said.session_id,
        requester.now,
        field,
        result,
    )
    store.add(tx, check, counted_times(requester.now, HOUR))
    audit.record_action(
        tx,
        requester,
        "member.checked",
        member["account_id"],
        member["id"],
        field=field.value,
        result=result.value,
    )
    return result


def find_checks(tx: Tx, member_id: int, holder: Holder, *, now: datetime) -> CallersChecks:
    """The checks of the person within the last hour. For each field the holder's latest answer
    counts, of two at one time the one that differs.
    """
    recent = store.list_of_member(tx, member_id, counted_times(now, HOUR))
    latest: dict[CheckedField, Disclosure] = {}
    for each in recent:
        if each.field is None or (each.actor, each.session_id) != holder:
            continue
        known = latest.setdefault(each.field, each)
        if each.at == known.at and each.answer is CheckAnswer.DIFFERS:
            latest[each.field] = each
    matches = {field: each.answer is CheckAnswer.MATCHES for field, each in latest.items()}
    done = sum(each.kind is DisclosureKind.CHECKED for each in recent)
    return CallersChecks(matches, left=max(0, CHECKS_AN_HOUR - done))


def _refuse_above_limit(tx: Tx, requester: Requester, member_id: int) -> None:
    """Raises RateLimited if the person was checked too often. Holds the person's checks until the
    transaction ends.
    """
    lock_name(tx, f"checks of member {member_id}")
    times = counted_times(requester.now, HOUR)
    recent = store.list_of_member(tx, member_id, times)
    checks = [each.at for each in recent if each.kind is DisclosureKind.CHECKED]
    if len(checks) >= CHECKS_AN_HOUR:
        wait = (checks[CHECKS_AN_HOUR - 1] + HOUR - requester.now).total_seconds()
        raise RateLimited(
            f"This person was checked {CHECKS_AN_HOUR} times within an hour.",
            retry_after_seconds=min(max(1, math.ceil(wait)), int(HOUR.total_seconds())),
        )


def _words(text: str) -> str:
    try:
        words = parse_text(text, limit=LONGEST_WORDS)
    except Rejected as rejected:
        raise Invalid([Fault("text", rejected.code, rejected.message)]) from None
    if not words:
        raise Invalid([Fault("text", codes.faults.REQUIRED, "must not be blank")])
    return words


def _folded(field: CheckedField, text: str, *, is_said: bool = False) -> frozenset[str]:
    """The forms in which two values of the field are compared: they agree if one is the same."""
    if field is CheckedField.DOB and is_said:
        return frozenset((_said_day(text),))
    fold = _FOLDS.get(field)
    return fold(text) if fold else frozenset((text,))


def _said_day(text: str) -> str:
    """The day of `YYYY-MM-DD` or month/day/year. Raises Invalid."""
    found = _AMERICAN_DATE.fullmatch(text)
    if found:
        month, day, year = found.groups()
        text = f"{year}-{month:0>2}-{day:0>2}"
    try:
        return datetime.strptime(text, "%Y-%m-%d").date().isoformat()  # noqa: DTZ007 - a day
    except ValueError:
        rule = "must be a real date, YYYY-MM-DD or month/day/year"
        raise Invalid([Fault("text", codes.faults.NOT_A_DATE, rule)]) from None


def _fold_name(text: str) -> frozenset[str]:
    return spellings(text) or frozenset((text.casefold(),))


def _fold_last_name(text: str) -> frozenset[str]:
    return last_name_spellings(text) or _fold_name(text)


def _fold_phone(text: str) -> frozenset[str]:
    digits = _NO_DIGITS.sub("", text)
    return frozenset((digits[1:] if len(digits) == 11 and digits[0] == "1" else digits,))


def _fold_zipcode(text: str) -> frozenset[str]:
    return frozenset((_NO_DIGITS.sub("", text),))


def _fold_address(text: str) -> frozenset[str]:
    return frozenset((fold_email(text),))


_FOLDS: dict[CheckedField, Callable[[str], frozenset[str]]] = {
    CheckedField.LAST_NAME: _fold_last_name,
    CheckedField.FIRST_NAME: _fold_name,
    CheckedField.ZIPCODE: _fold_zipcode,
    CheckedField.EMAIL: _fold_address,
    CheckedField.PHONE: _fold_phone,
}


def _same_length(
    said: frozenset[str], stored: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The first five digits of both zip codes if one of them has no more."""
    if any(len(digits) == _ZIP_DIGITS for digits in (*said, *stored)):
        return _first_five(said), _first_five(stored)
    return said, stored


def _first_five(zipcodes: frozenset[str]) -> frozenset[str]:
    return frozenset(digits[:_ZIP_DIGITS] for digits in zipcodes)


def _agree(said: frozenset[str], stored: frozenset[str]) -> bool:
    """Whether they share a form. Each pair is compared whole, by digests of one length, so that the
    time does not tell how much of a value was right.
    """
    pairs = [
        hmac.compare_digest(_digest(mine), _digest(theirs)) for mine in said for theirs in stored
    ]
    return any(pairs)


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
