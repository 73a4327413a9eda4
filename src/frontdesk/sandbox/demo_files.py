"""The people and the eligibility files of the demo's history; all are invented."""

import csv
from collections.abc import Iterable, Sequence
from datetime import date
from io import BytesIO, StringIO
from itertools import islice

from frontdesk.formats.model import Format
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import COLUMNS, sample_members

Person = dict[str, str]

BRONZE_PEOPLE = 160
SILVER_PEOPLE = 40
SEED = 14
# Of the file that is loaded while the demo starts: some seconds of work.
LARGE_PEOPLE = 15_000
LARGE_SEED = 15

# Two people of one name. The first is on the lists of two plans, by two identifiers.
NAMESAKES = ("Dana", "Whitfield")
_SHARED_BIRTHDAY = "1984-03-12"

NOT_READABLE = b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n%%EOF\n"


def invented(count: int, *, after: int, covered_from: date) -> list[Person]:
    """`count` people of the demo after the first so many, with access from a day on without an
    end. The same arguments give the same people.
    """
    found = islice(sample_members(after + count, seed=SEED), after, None)
    return [_covered(person, covered_from) for person in found]


def namesakes(covered_from: date) -> tuple[Person, Person, Person]:
    """Two people of one name in Bronze, and the first of them once more, in Silver."""
    return (
        _namesake("DW-1001", _SHARED_BIRTHDAY, "dana.whitfield@example.com", covered_from),
        _namesake("DW-1002", "1991-07-30", "d.whitfield@example.org", covered_from),
        _namesake("DW-2001", _SHARED_BIRTHDAY, "", covered_from),
    )


def _namesake(key: str, dob: str, email: str, covered_from: date) -> Person:
    first_name, last_name = NAMESAKES
    known = {"external_id": key, "member_id": key, "first_name": first_name, "dob": dob}
    known |= {"last_name": last_name, "gender": "female", "email": email, "zipcode": "02134"}
    known |= {"city": "Boston", "county": "Suffolk", "state": "MA"}
    return _covered(dict.fromkeys(COLUMNS, "") | known, covered_from)


def _covered(person: Person, covered_from: date) -> Person:
    return person | {"effective_date": covered_from.isoformat(), "expiry_date": ""}


def beginning(people: Iterable[Person], day: date) -> list[Person]:
    """The same people, with access from another day on."""
    return [_covered(person, day) for person in people]


def with_faults(people: Sequence[Person]) -> list[Person]:
    """Six people as a hurried export has them: most are refused, each for another reason."""
    wrong = (
        {"zipcode": "2134"},
        {"dob": "31.02.1980"},
        {"external_id": ""},
        {"effective_date": "soon"},
        {"gender": "N/A?"},
        {"city": "Salem"},
    )
    return [person | fault for person, fault in zip(people, wrong, strict=True)]


def csv_of(people: Iterable[Person]) -> bytes:
    """The people as a CSV file."""
    return _written(people, Format.CSV)


def x12_of(people: Iterable[Person]) -> bytes:
    """The people as an 834."""
    return _written(people, Format.X12)


def large_csv(covered_from: date) -> bytes:
    """A large file of people who are no members yet. A thousand people recur with other identifiers:
    the start of the demo waits for it.
    """
    base = list(sample_members(1000, seed=LARGE_SEED))
    page = StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(COLUMNS)
    day = {"effective_date": covered_from.isoformat(), "expiry_date": "", "email": ""}
    for number in range(LARGE_PEOPLE):
        person = base[number % len(base)]
        key = f"J{number:06d}"
        writer.writerow((person | day | {"external_id": key, "member_id": key}).values())
    return page.getvalue().encode()


def _written(people: Iterable[Person], format_: Format) -> bytes:
    out = BytesIO()
    for _ in write_sample(people, format_, out):
        pass
    return out.getvalue()
