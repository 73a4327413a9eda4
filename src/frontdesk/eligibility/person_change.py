"""What people change of one member: correct fields, end the access, give another external_id. Each
change is decided and written as that of a request is (`enrol`), by all its rules.

A page shows a member as of an entry of its history. If another entry has come since, nothing is done
(MemberOvertaken), so that nobody undoes what they have not seen.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import orjson

from frontdesk import codes
from frontdesk.audit import Requester
from frontdesk.clock import account_day
from frontdesk.codes import Kind
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.eligibility import store
from frontdesk.eligibility.covered import MemberChange
from frontdesk.eligibility.decide import decide_chunk
from frontdesk.eligibility.enrol import read_chunk, write_chunk
from frontdesk.eligibility.fields import STORED_FIELDS, parse_member
from frontdesk.eligibility.model import Action, Enrolled, Intent, MemberRecord, Submission
from frontdesk.eligibility.search import get_kept
from frontdesk.errors import Fault, FrontdeskError
from frontdesk.plans import find_owners
from frontdesk.reach import Reach

NO_VERSION = 0  # of a member without history
METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Correction:
    """The texts of fields, as they were typed in a form. `are_whole`: the form has shown the values,
    so a text that is as it was shown changes nothing, and a blank one clears the field. Otherwise
    blank texts change nothing.
    """

    texts: Mapping[str, str]
    are_whole: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The last day of access (`YYYY-MM-DD`, as it was typed)."""

    on: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Another identifier of the customer's. A member_id that is the same changes with it."""

    external_id: str


# The fields of a correction, in the order of the reference. An external_id is given by a Rename.
CORRECTED = tuple(name for name in STORED_FIELDS if name != "external_id")

Change = Correction | End | Rename


@dataclass(frozen=True, slots=True)
class AskedChange:
    """A change of the member as its page has shown it: `version` is the newest entry of its history
    there. `is_confirmed`: the user has seen what becomes of the access.
    """

    member_id: int
    version: int
    change: Change
    is_confirmed: bool = False


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """The effect of a change. `is_written` is False of one that moves the access and was not
    confirmed: then nothing is done.
    """

    made: Enrolled
    is_written: bool


class MemberOvertaken(FrontdeskError, kind=Kind.CONFLICT):
    """The member was changed after its page was made. `change` is the newest change."""

    def __init__(self, change: MemberChange) -> None:
        self.change = change
        super().__init__("The record changed while the page was open.")


def read_version(tx: Tx, member_id: int) -> int:
    """The newest entry of the member's history."""
    newest = store.list_newest_entries(tx, member_id, limit=1)
    return newest[0].id if newest else NO_VERSION


def change_person(
    tx: Tx, requester: Requester, reach: Reach, asked: AskedChange, *, uniqueness: Uniqueness
) -> ChangeAnswer | FrontdeskError:
    """Change the member, unless the change moves its access and is not confirmed yet. Returns the
    refusal of the record (Invalid, TooManyTaken, Conflict), for which the transaction has counted
    what it may have learned: commit it.

    Raises NotFound, also for a withdrawn or erased member, and MemberOvertaken.
    """
    member = get_kept(tx, reach, asked.member_id)
    record = replace(
        _record_of(tx, member, asked.change, requester), external_id=member["external_id"]
    )
    submission = Submission(
        member["account_id"],
        member["plan_id"],
        record,
        requester.actor,
        requester.request_id,
        Action.END if isinstance(asked.change, End) else Action.ENROL,
        intent=Intent(creates=False, moves=False, eligibility_id=member["id"]),
    )
    stored = read_chunk(tx, [submission], now=requester.now, uniqueness=uniqueness)
    # Before anything is said of the values: an old page would tell, as often as it is sent and without
    # a change, whether the record has them.
    refuse_overtaken(tx, member["id"], asked.version)
    decided = decide_chunk(stored, [submission], None)
    [(_, result)] = decided.pairs
    if isinstance(result, Enrolled) and result.access is not None and not asked.is_confirmed:
        return ChangeAnswer(result, is_written=False)
    [written] = write_chunk(tx, stored, decided, audited=True)
    return ChangeAnswer(written, is_written=True) if isinstance(written, Enrolled) else written


def refuse_overtaken(tx: Tx, member_id: int, version: int) -> None:
    """Raises MemberOvertaken if the newest entry in the history of the locked member is another."""
    newest = store.list_newest_entries(tx, member_id, limit=1)
    if newest and newest[0].id != version:
        [entry] = newest
        raise MemberOvertaken(
            MemberChange(
                entry.changed_at,
                entry.client,
                entry.file_id,
                outcome=entry.outcome,
                fields=tuple(entry.changes),
            )
        )


def _record_of(tx: Tx, member: store.Values, change: Change, requester: Requester) -> MemberRecord:
    """The change as a request would send it. Its external_id is the new one of a Rename."""
    if isinstance(change, Rename):
        given: dict[str, object] = {"external_id": change.external_id}
        if member["member_id"] == member["external_id"]:  # both are equal by default in an 834
            given["member_id"] = change.external_id
        return parse_member(given, today="")
    given = {"external_id": member["external_id"]}
    if isinstance(change, Correction):
        [owner] = find_owners(tx, [member["plan_id"]]).rows
        today = account_day(requester.now, owner["time_zone"]).latest
        return parse_member(given | _corrected(member, change), today=today)
    record = parse_member(given | {"expiry_date": change.on}, today="")
    if record.faults or record.given["expiry_date"] is not None:
        return record
    fault = Fault("expiry_date", codes.faults.REQUIRED, "must not be blank")
    return replace(record, faults=(fault,))


def _corrected(member: store.Values, change: Correction) -> dict[str, object]:
    """The fields that the form changes, as a request would give them."""
    texts = {name: text.strip() for name, text in change.texts.items() if name in CORRECTED}
    if change.are_whole:
        stored = {name: text_of_field(name, member[name]) for name in texts}
        return {name: _value_of(name, text) for name, text in texts.items() if text != stored[name]}
    return {name: _value_of(name, text) for name, text in texts.items() if text}


def text_of_field(name: str, value: Any) -> str:
    """The stored value of a field as a form shows it; "" for none. That of metadata is JSON."""
    if name == METADATA:
        return orjson.dumps(value).decode() if value else ""
    return "" if value is None else str(value)


def _value_of(name: str, text: str) -> object:
    """What a request would have in the field; a text that is no JSON stays one, and is refused."""
    if name == METADATA and text:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(text)
    return text or None
