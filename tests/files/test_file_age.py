"""An 834 that is dated before the last one of its sender is held (docs/files.md, Decide about a held
file).
"""

from typing import Any

import pytest

from frontdesk.cli.file import summary
from frontdesk.files.model import EligibilityFile
from tests.conftest import SetClock
from tests.files.loading import Desk, csv_of, row
from tests.formats.reading import interchange, person, transaction

DAY = 86_400
ANA = person("Ana", "19710101", family="F1", number="REF*17*01~")


def load(
    desk: Desk, day: str, *, sender: str = "SENDER", home: str = "02134", **options: Any
) -> EligibilityFile:
    """An 834 of that day from GS02, which gives Ana a zip code. The clock says 20 November 2026."""
    purpose = options.pop("purpose", "2")
    loop = ANA.replace("*02134~", f"*{home}~")
    content = interchange(transaction(loop, day=day, purpose=purpose))
    return desk.load(content.replace("GS*BE*SENDER*", f"GS*BE*{sender}*").encode(), **options)


def zipcode(desk: Desk) -> str:
    [member] = desk.members().values()
    return str(member["zipcode"])


@pytest.mark.parametrize("purpose", ["2", "RX"])
def test_an_older_834_is_held_until_it_is_approved(desk: Desk, purpose: str) -> None:
    first = load(desk, "20261119")
    assert first.sender == "SENDER"
    load(desk, "20261119", home="10001")
    dry = load(desk, "20261112", dry_run=True, purpose=purpose)
    old = load(desk, "20261112", purpose=purpose)
    said = f"The file is of 2026-11-12, and file {first.id + 1} of 2026-11-19 from the same sender"
    assert old.problem is not None
    assert (old.state, old.problem["code"]) == ("held", "older_than_applied")
    assert dry.problem == old.problem
    assert str(old.problem["message"]).startswith(said)
    assert f"file approve {old.id}" in str(summary(old))
    assert zipcode(desk) == "10001"
    assert desk.approve(old).counts == {"updated": 1}
    assert zipcode(desk) == "02134"
    third = load(desk, "20261115", home="10002")
    assert third.state == "held", "the approved file does not make that of the 19th forgotten"


def test_another_sender_another_plan_and_the_same_day_are_not_older(desk: Desk) -> None:
    load(desk, "20261119")
    for day, options in (
        ("20261119", {}),
        ("20261112", {"sender": "OTHER"}),
        ("20261112", {"purpose": "4"}),
    ):
        assert load(desk, day, **options).state == "done"
    other = person("Bela", "19720202", family="F2", number="REF*17*01~")
    content = interchange(transaction(other, day="20261112")).encode()
    assert desk.load(content, plan=1).state == "done"
    assert desk.load(csv_of([row(1)])).sender is None


def test_a_file_that_was_not_applied_or_was_undone_makes_no_later_one_old(desk: Desk) -> None:
    load(desk, "20261119", dry_run=True)
    load(desk, "20261119", purpose="4")
    undone = load(desk, "20261118")
    desk.undo(undone)
    assert load(desk, "20261112").state == "done"
    cancelled = load(desk, "20261105")
    assert cancelled.state == "held"
    desk.cancel(cancelled)
    assert load(desk, "20261113").state == "done"


def test_a_date_in_the_future_makes_no_later_file_old(desk: Desk, clock: SetClock) -> None:
    load(desk, "20621119")
    assert load(desk, "20261120", home="10001").state == "done", "the corrected file"
    clock.advance(DAY)
    assert load(desk, "20261121", home="10002").state == "done"
    assert load(desk, "20261119").state == "held"
    clock.advance(DAY)
    assert load(desk, "20621119").state == "done"


def test_a_file_of_tomorrow_counts_as_such(desk: Desk) -> None:
    """In the zone of the sender it is tomorrow already."""
    load(desk, "20261121")
    assert load(desk, "20261120", home="10001").state == "held"


def test_the_sender_is_that_of_the_first_group_of_834s(desk: Desk) -> None:
    ack = "GS*FA*CLEARING*RECEIVER*20261120*0800*2*X*005010X231A1~ST*999*0001~SE*2*0001~GE*1*2~"
    content = (
        interchange(transaction(ANA)).replace("GS*BE", f"{ack}GS*BE").replace("IEA*1", "IEA*2")
    )
    assert desk.load(content.encode()).sender == "SENDER"
    long = load(desk, "20261120", sender="A-SENDER-WITH-A-LONG-NAME")
    assert long.sender == "A-SENDER-WITH-A"
