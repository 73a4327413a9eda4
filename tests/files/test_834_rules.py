"""What an 834 must not cost a member: access for a shared e-mail address, or an end that is refused (docs/834.md)."""

import pytest

from frontdesk.files.model import EligibilityFile
from frontdesk.formats.model import FileMode
from tests.files.loading import Desk, csv_of, row
from tests.formats.reading import file_834

HOME = "N3*1 Example Street~N4*Boston*MA*02134~"
ADD = "HD*021**HLT*Gold~DTP*348*D8*20260101~"


def member(
    number: str, first: str, *, code: str = "021", email: str = "", coverage: str = ADD, city: str = "Boston"
) -> str:
    contact = f"PER*IP**EM*{email}~" if email else ""
    who, relation = ("Y", "18") if number == "01" else ("N", "19")
    return (
        f"INS*{who}*{relation}*{code}*28*A***FT~REF*0F*FAMILY1~REF*17*{number}~NM1*IL*1*Sample*{first}~"
        f"{contact}{HOME.replace('Boston', city)}DMG*D8*20050711*F~{coverage}"
    )


def load(desk: Desk, *members: str, purpose: str = "2", mode: FileMode | None = None) -> EligibilityFile:
    return desk.load(file_834(*members, purpose=purpose).encode(), mode=mode)


def test_an_e_mail_of_another_record_is_dropped_and_never_refuses_the_member(desk: Desk) -> None:
    both = (member("01", "Robin", email="home@example.com"), member("02", "Kim", email="HOME@example.com"))
    file = load(desk, *both)
    assert desk.outcomes(file) == [
        (8, "created", ""),
        (18, "created", ""),
        (18, "warned", "email_taken"),
        (18, "warned", "similar_member"),
    ]
    assert [each["email"] for each in desk.members().values()] == ["home@example.com", None]
    assert desk.count("invitations") == 0
    ended = member(
        "02", "Kim", code="001", email="home@example.com", coverage="HD*024**HLT*Gold~DTP*349*D8*20260930~"
    )
    assert desk.outcomes(load(desk, ended)) == [(8, "updated", ""), (8, "warned", "email_taken")]
    assert desk.members()["FAMILY1-02"]["expiry_date"] == "2026-09-30"


def test_a_dropped_e_mail_is_taken_once_it_is_free_and_a_stored_one_stays(desk: Desk) -> None:
    file = csv_of([row(1, email="a@example.com"), row(2, email="a@example.com")])
    assert desk.load(file).counts == {"created": 2, "warned": 1}
    assert desk.load(file).counts == {"unchanged": 2, "warned": 1}
    desk.load(csv_of([row(1, email="b@example.com")]))
    assert desk.load(csv_of([row(2, email="a@example.com")])).counts == {"updated": 1}
    desk.load(csv_of([row(2, email="b@example.com", zipcode="02135")]))
    stored = desk.members()["E00002"]
    assert (stored["email"], stored["zipcode"]) == ("a@example.com", "02135")


@pytest.mark.parametrize(
    "end",
    [
        member("01", "Robin", code="024", coverage="HD*024**HLT*Gold~DTP*349*D8*20261231~"),
        member("01", "Robin", code="024", coverage=""),
        member("01", "Robin", code="001", coverage="HD*024**HLT*Gold~DTP*349*D8*20261231~"),
        member(
            "01", "Robin", code="001", coverage="HD*024**HLT*Gold~DTP*348*D8*20270101~DTP*349*D8*20261231~"
        ),
    ],
    ids=["member", "file-date", "coverage", "cancelled"],
)
def test_an_end_before_the_first_day_ends_the_access_on_that_day(desk: Desk, end: str) -> None:
    load(desk, member("01", "Robin", coverage="HD*021**HLT*Gold~DTP*348*D8*20270101~"))
    file = load(desk, end)
    assert [line["code"] for line in desk.report(file)] == ["", "ends_on_first_day"]
    stored = desk.members()["FAMILY1-01"]
    assert (stored["effective_date"], stored["expiry_date"]) == ("2027-01-01", "2027-01-01")


def test_an_end_before_the_begin_that_nobody_called_an_end_is_refused(desk: Desk) -> None:
    wrong = member("01", "Robin", coverage="HD*021**HLT*Gold~DTP*348*D8*20270101~DTP*349*D8*20261231~")
    assert desk.outcomes(load(desk, wrong)) == [(8, "refused", "expiry_before_effective")]


FULL, CHANGE = FileMode.FULL, FileMode.CHANGE


@pytest.mark.parametrize(
    ("purpose", "code", "mode", "became"),
    [
        ("2", "021", FULL, {"created": 1, "ended": 1}),
        ("4", "030", FULL, {"created": 1, "ended": 1}),
        ("RX", "030", CHANGE, {"created": 1}),
        ("4", "030", CHANGE, {"created": 1}),
        ("", "021", CHANGE, {"created": 1}),
        ("RX", "021", None, {"created": 1, "ended": 1}),
        ("4", "030", None, {"refused": 1}),
        ("2", "030", None, {"created": 1}),
    ],
)
def test_the_mode_of_the_upload_goes_before_what_the_file_says(
    desk: Desk, purpose: str, code: str, mode: FileMode | None, became: dict[str, int]
) -> None:
    load(desk, member("01", "Robin"))
    file = load(desk, member("02", "Kim", code=code), purpose=purpose, mode=mode)
    warned = {"warned": 1} if "created" in became else {}  # of one family and birth date
    assert (file.state.value, file.counts) == ("done", became | warned)
    assert mode in (None, file.mode)
