"""Finds people for a person who looks for one: by an identifier, or by birth date and the first
letters of a name; and the people who have the names and the birth date of one. They are covered.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple

from frontdesk import codes
from frontdesk.clock import account_day
from frontdesk.db import Tx, sets
from frontdesk.eligibility import store
from frontdesk.eligibility.covered import CoveredPerson, MemberChange, cover
from frontdesk.eligibility.field_kinds import EMAIL_LENGTH, IDENTIFIER_LENGTH
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import StatedPerson
from frontdesk.eligibility.persons import DIGEST_SIZE, person_digest
from frontdesk.eligibility.same_person import spellings, words_of
from frontdesk.errors import Fault, Invalid, NotFound
from frontdesk.plans import find_owners
from frontdesk.reach import Reach
from frontdesk.text import Rejected, fold_email, parse_text

MOST_FOUND = 50
MOST_SIMILAR = 20
MOST_BORN = 2000  # stored rows with one birth date that a search reads
MOST_NAMESAKES = 200  # stored rows with one person digest that a search reads
NAME_LENGTH = FIELDS["last_name"].kind.length


@dataclass(frozen=True, slots=True)
class ByExternalId:
    """The member with exactly this identifier. That of a merged member leads to the kept one."""

    external_id: str


@dataclass(frozen=True, slots=True)
class ByEmail:
    """The member with this e-mail address, in any letter case."""

    email: str


@dataclass(frozen=True, slots=True)
class ByBirthDate:
    """The members that were born on this day (`YYYY-MM-DD`) and have these first letters of a name
    or of a word of it, without letter case and accents. One of the two may be empty.
    """

    dob: str
    last_name: str = ""
    first_name: str = ""


FindBy = ByExternalId | ByEmail | ByBirthDate


class Truncation(StrEnum):
    """Why not everybody is shown who fits."""

    MORE_FIT = "more_fit"  # give more letters
    # Only people with exactly these names are shown: give both names whole, or the external_id.
    TOO_MANY_BORN = "too_many_born"


class FoundPeople(NamedTuple):
    """The people by id; `truncated` if there may be more."""

    people: tuple[CoveredPerson, ...]
    truncated: Truncation | None = None


def search_people(tx: Tx, reach: Reach, by: FindBy, *, now: datetime) -> FoundPeople:
    """At most 50 people within reach. Reads 2,000 stored rows at most, by an index.

    Raises Invalid for a birth date without a letter of a name, for one that is no date, and for one
    without an account: no index has the birth dates of all accounts.
    """
    if isinstance(by, ByBirthDate):
        return _search_born(tx, reach, by, now)
    if isinstance(by, ByExternalId):
        column = "external_id"
        text = _read(by.external_id, IDENTIFIER_LENGTH)
    else:
        column = "email_folded"
        text = fold_email(_read(by.email, EMAIL_LENGTH))
    if not text:
        return FoundPeople(people=())
    found = store.find_members(tx, reach, text, column=column)
    kept = {values["id"]: values for values in (_kept(tx, each) for each in found[:MOST_FOUND])}
    return FoundPeople(_covered(tx, [*kept.values()], now))


def find_similar_to(tx: Tx, reach: Reach, member_id: int, *, now: datetime) -> FoundPeople:
    """At most 20 other people of the account with the letters of both names and the birth date of
    this member, also those without access today; without those that were called distinct from it.
    Raises NotFound.
    """
    member = get_kept(tx, reach, member_id)
    hasher = sets.keyed_hasher(tx, size=DIGEST_SIZE)
    namesakes = _namesakes(tx, member["account_id"], person_digest(hasher, member))
    distinct = store.list_distinct_from(tx, member["account_id"], member["id"])
    others = [each for each in namesakes if each["id"] not in {member["id"], *distinct}]
    return _first(tx, others, MOST_SIMILAR, now)


def get_kept(tx: Tx, reach: Reach, member_id: int) -> store.Values:
    """The member with this id within reach, by column; of a merged one the kept member. Raises
    NotFound, also for a withdrawn or erased one.
    """
    found = store.find_members(tx, reach, member_id, column="id")
    if not found:
        raise NotFound("eligible member")
    return _kept(tx, found[0])


def lock_member(tx: Tx, member_id: int) -> None:
    """Lock the member against changes until the transaction ends."""
    store.lock_by_ids(tx, [member_id])


def get_covered(tx: Tx, reach: Reach, member_id: int, *, now: datetime) -> CoveredPerson:
    """The covered person with the last change, without the place of its row. Raises NotFound as
    `get_kept` does.
    """
    member = get_kept(tx, reach, member_id)
    change = next(iter(list_changes(tx, member["id"], limit=1)), None)
    [person] = _covered(tx, [member], now)
    return person._replace(last_change=change)


def list_changes(tx: Tx, member_id: int, *, limit: int) -> list[MemberChange]:
    """The newest changes of the member, newest first: which fields, without their values."""
    entries = store.list_newest_entries(tx, member_id, limit=limit)
    return [
        MemberChange(
            entry.changed_at,
            entry.client,
            entry.file_id,
            outcome=entry.outcome,
            fields=tuple(entry.changes),
        )
        for entry in entries
    ]


def list_covered(
    tx: Tx, reach: Reach, member_ids: Iterable[int], *, now: datetime
) -> tuple[CoveredPerson, ...]:
    """Those of these members that are within reach and have not been merged, withdrawn or erased."""
    if reach.account_id is None:
        raise Invalid([Fault("account", codes.faults.REQUIRED, "must be named")])
    found = store.list_records_of(tx, reach.account_id, [*member_ids])
    return _covered(tx, found, now)


def list_names(tx: Tx, account_id: int, ids: Collection[int]) -> dict[int, StatedPerson]:
    """The names and birth dates of the account's people with these ids, without those that were
    withdrawn or merged. Record the reading before.
    """
    found = store.list_records_of(tx, account_id, ids) if ids else []
    return {
        each["id"]: StatedPerson(each["first_name"], each["last_name"], str(each["dob"]))
        for each in found
    }


def _search_born(tx: Tx, reach: Reach, by: ByBirthDate, now: datetime) -> FoundPeople:
    last_letters = spellings(_read(by.last_name, NAME_LENGTH))
    first_letters = spellings(_read(by.first_name, NAME_LENGTH))
    faults = []
    if not last_letters and not first_letters:
        rule = "must have a letter, or the first name must"
        faults.append(Fault("last_name", codes.faults.REQUIRED, rule))
    day = _read_day(by.dob)
    if day is None:
        faults.append(Fault("dob", codes.faults.NOT_A_DATE, "must be a real date, YYYY-MM-DD"))
    if reach.account_id is None:
        rule = "must be named for a search by birth date"
        faults.append(Fault("account", codes.faults.REQUIRED, rule))
    if faults or day is None or reach.account_id is None:
        raise Invalid(faults)
    account_id = reach.account_id
    born = store.list_born_on(tx, account_id, day, after_id=0, limit=MOST_BORN + 1)
    if len(born) > MOST_BORN:
        person = {"account_id": account_id, "dob": day}
        person |= {"first_name": by.first_name, "last_name": by.last_name}
        hasher = sets.keyed_hasher(tx, size=DIGEST_SIZE)
        namesakes = _namesakes(tx, account_id, person_digest(hasher, person))
        exact = _first(tx, namesakes, MOST_FOUND, now)
        return exact._replace(truncated=Truncation.TOO_MANY_BORN)
    ids = [
        row.id
        for row in born
        if row.is_there
        and _begins(row.last_name, last_letters)
        and _begins(row.first_name, first_letters)
    ]
    found = store.list_records_of(tx, account_id, ids[: MOST_FOUND + 1])
    return _first(tx, found, MOST_FOUND, now)


def _begins(name: str, letters: Iterable[str]) -> bool:
    """Whether the name or a word of it begins with one of these; True without any."""
    starts = (*letters,)
    return not starts or any(word.startswith(starts) for word in words_of(name))


def _namesakes(tx: Tx, account_id: int, digest: str | None) -> list[store.Values]:
    if digest is None:
        return []
    return store.list_namesakes(tx, account_id, digest, limit=MOST_NAMESAKES)


def _first(tx: Tx, found: Sequence[store.Values], most: int, now: datetime) -> FoundPeople:
    truncated = Truncation.MORE_FIT if len(found) > most else None
    return FoundPeople(_covered(tx, found[:most], now), truncated)


def _covered(tx: Tx, found: Sequence[store.Values], now: datetime) -> tuple[CoveredPerson, ...]:
    owners = find_owners(tx, {values["plan_id"] for values in found}).rows if found else []
    days = {owner["id"]: account_day(now, owner["time_zone"]) for owner in owners}
    people = (cover(values, days[values["plan_id"]]) for values in found)
    return tuple(sorted(people, key=lambda person: person.id))


def _kept(tx: Tx, member: store.Values) -> store.Values:
    while member["merged_into"] is not None:
        own = Reach.of(member["account_id"])
        [member] = store.find_members(tx, own, member["merged_into"], withdrawn=True, column="id")
    return member


def _read(text: str, limit: int) -> str:
    """The stored form; "" for a text that nothing stored can be."""
    try:
        return parse_text(text, limit=limit)
    except Rejected:
        return ""


def _read_day(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None
