"""What 834s do to members: who has access from when until when, as docs/834.md and its examples
say.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from frontdesk.config import read_config
from frontdesk.files.model import EligibilityFile
from frontdesk.files.tables import eligibility_files
from frontdesk.formats.model import FileMode
from frontdesk.installation import run_options
from frontdesk.mapping.parser import parse_mapping
from tests.files.loading import ON_SQLITE, Desk, csv_of, row
from tests.formats.reading import ADD, IDENTIFY, MEMBER, file_834, interchange, person, transaction

pytestmark = ON_SQLITE
Access = tuple[str, str | None, str]
KEY = "FAMILY1-01"
OPEN = ("2026-01-01", None, "Gold")
CANCELLED = "HD*024**HLT*Gold~DTP*349*D8*20260630~"
SUBSCRIBER = person(number="REF*17*01~")
kim = partial(person, "Kim", "20150203", relation="19", number="REF*17*02~")


def member(code: str, coverage: str, dates: str = "") -> str:
    return person(code=code, coverage=coverage, number=f"REF*17*01~{dates}")


def access(desk: Desk, key: str = KEY) -> Access:
    stored = desk.members()[key]
    return stored["effective_date"], stored["expiry_date"], stored["medical_plan_description"]


def test_an_834_says_itself_how_it_is_loaded_and_only_once(desk: Desk) -> None:
    file = desk.load_834(MEMBER)
    assert (file.state, file.format, file.mode, file.file_date) == (
        "done",
        "834",
        "change",
        "2026-11-20",
    )
    other = (
        MEMBER.replace("FAMILY1", "FAMILY2")
        .replace("900000001", "900000002")
        .replace("robin@", "r2@")
    )
    full = desk.load_834(other, purpose="RX")
    assert (full.mode, full.counts) == ("full", {"created": 1, "ended": 1, "warned": 1, "lost": 1})


def test_an_unknown_sex_is_stored_as_unknown_and_keeps_no_end_out(desk: Desk) -> None:
    odd = SUBSCRIBER.replace("*F~HD", "*X~HD")
    file = desk.load_834(odd)
    assert desk.outcomes(file) == [(8, "created", ""), (8, "warned", "gender_unknown")]
    assert desk.members()[KEY]["gender"] == "unknown"
    desk.load_834(SUBSCRIBER)
    ended = desk.load_834(odd.replace("*021*28", "*001*28").replace(ADD, CANCELLED))
    assert desk.outcomes(ended) == [(8, "updated", ""), (8, "warned", "gender_unknown")]
    assert access(desk)[1] == "2026-06-30"
    assert desk.members()[KEY]["gender"] == "female", "a stored value stays"


def test_the_report_says_which_member_of_which_transaction_a_row_is(desk: Desk) -> None:
    ann = person("Ann", family="F2", number="REF*17*01~", last="Other")
    wrong = person("Bo", family="F3", number="REF*17*01~", last="Third", code="999")
    last = person("Lou", family="F4", number="REF*17*01~", last="Fourth")
    two = transaction(ann, wrong, last, control="0002")
    content = interchange(transaction(SUBSCRIBER, kim()), two).encode()
    expected = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]
    for counts in ({"created": 4, "refused": 1}, {"unchanged": 4, "refused": 1}):
        file = desk.load(content)
        assert {name: file.counts[name] for name in counts} == counts
        report = desk.report(file)
        assert [(line["transaction"], line["ordinal"]) for line in report] == expected
        assert [line["row"] for line in report] == sorted(line["row"] for line in report)
    changed = content.replace(b"Lou", b"Lew")
    assert desk.report(desk.load(changed))[-1]["ordinal"] == 3
    table = desk.report(desk.load(csv_of([row(1)])))
    assert [(line["transaction"], line["ordinal"]) for line in table] == [(None, None)]


def test_a_test_file_changes_nothing_in_production(desk: Desk) -> None:
    settings = {
        "FRONTDESK_DATABASE_URL": "sqlite:///x.db",
        "FRONTDESK_BASE_URL": "https://a.example",
    }
    assert run_options(read_config(settings)).applies_tests, "a sandbox"
    desk.options = run_options(read_config({**settings, "FRONTDESK_ENVIRONMENT": "production"}))
    dry = desk.load_834(SUBSCRIBER)
    assert (dry.state, dry.dry_run, dry.counts) == ("done", True, {"created": 1})
    assert (dry.problem or {})["code"] == "only_tested"
    assert desk.members() == {}
    applied = {"834": {**IDENTIFY, "tests": "apply"}}
    assert desk.load_834(SUBSCRIBER, mapping=applied).dry_run is False
    real = file_834(SUBSCRIBER).replace("*0*T*:", "*0*P*:").encode()
    file = desk.load(real)
    assert (file.dry_run, file.problem, file.counts) == (False, None, {"unchanged": 1})


DENTAL = "HD*021**DEN*Teeth~DTP*348*D8*20200101~"


@pytest.mark.parametrize(
    ("code", "coverage"),
    [
        ("021", DENTAL),
        ("024", "HD*024**DEN*Teeth~DTP*349*D8*20260630~"),
        ("001", "HD*002**DEN*Teeth~DTP*348*D8*20260101~"),
    ],
)
def test_what_does_not_count_leaves_access_and_applies_the_rest(
    desk: Desk, code: str, coverage: str
) -> None:
    desk.load_834(SUBSCRIBER)
    file = desk.load_834(member(code, coverage).replace("Boston", "Salem"))
    assert desk.outcomes(file) == [(8, "updated", ""), (8, "warned", "no_medical_coverage")]
    assert (access(desk), desk.members()[KEY]["city"]) == (OPEN, "Salem")


DELETED = "HD*002**HLT*Gold~DTP*348*D8*20260101~"


@pytest.mark.parametrize("coverages", ["", DENTAL, DELETED])
def test_a_new_member_without_a_coverage_that_counts_is_refused_alone(
    desk: Desk, coverages: str
) -> None:
    file = desk.load_834(member("021", coverages), person("Alex", "19780203", number="REF*17*02~"))
    [refused] = [line for line in desk.report(file) if line["outcome"] == "refused"]
    assert (refused["row"], refused["field"], refused["code"]) == (
        8,
        "effective_date",
        "no_medical_coverage",
    )
    assert desk.members().keys() == {"FAMILY1-02"}


ENDED_AT_ONCE = ("2026-01-01", "2026-01-01", "Gold")
NEXT_ENDS = "HD*024**PPO*Next~DTP*348*D8*20260101~DTP*349*D8*20261031~"
NEXT = "HD*021**PPO*Next~DTP*348*D8*20260101~"


@pytest.mark.parametrize(
    ("change", "told", "found"),
    [
        (member("001", DELETED), "ends_on_first_day", ENDED_AT_ONCE),
        (member("024", DELETED), "ends_on_first_day", ENDED_AT_ONCE),
        (member("024", DELETED, "DTP*357*D8*20261031~"), "ends_on_first_day", ENDED_AT_ONCE),
        (member("001", ADD + DELETED), "ends_on_first_day", ENDED_AT_ONCE),
        (member("001", DELETED + DENTAL), "ends_on_first_day", ENDED_AT_ONCE),
        (member("001", "HD*002**HLT*Gold~"), "ends_on_first_day", ENDED_AT_ONCE),
        # Another coverage than the one that is stored was never effective.
        (member("001", DELETED.replace("2026", "2025")), "other_coverage_open", OPEN),
        # Beside another coverage that counts, a deleted one is none.
        (member("001", DELETED + NEXT), "", ("2026-01-01", None, "Next")),
        (member("001", NEXT + DELETED), "", ("2026-01-01", None, "Next")),
        (member("001", DELETED + ADD.replace("0101", "0201")), "", ("2026-02-01", None, "Gold")),
        (member("001", DELETED + NEXT_ENDS), "", ("2026-01-01", "2026-10-31", "Gold")),
    ],
)
def test_a_deleted_coverage_ends_access_on_its_first_day_unless_another_counts(
    desk: Desk, change: str, told: str, found: Access
) -> None:
    desk.load_834(SUBSCRIBER)
    assert desk.codes(desk.load_834(change))[-1][1] == told
    assert access(desk) == found


def test_an_end_and_a_later_beginning_leave_access_open_in_two_files_and_in_one(desk: Desk) -> None:
    desk.load_834(SUBSCRIBER)
    end = "HD*024**HLT*Gold~DTP*349*D8*20261130~"
    begin = "HD*021**PPO*Next~DTP*348*D8*20261201~"
    desk.load_834(member("001", end + begin))
    assert access(desk) == ("2026-01-01", None, "Next"), "the access that holds until then is kept"
    desk.load_834(member("024", end.replace("1130", "1031")))
    assert access(desk) == ("2026-12-01", None, "Next"), "the gap is the sender's"
    desk.load_834(member("021", begin.replace("1201", "1101")))
    assert access(desk) == ("2026-01-01", None, "Next")
    desk.load_834(kim(coverage=end + begin))
    assert access(desk, "FAMILY1-02") == ("2026-12-01", None, "Next")


HMO_ENDS = member("024", "HD*024**HLT*Gold~DTP*349*D8*20261031~")
PPO_BEGINS = member("021", "HD*021**PPO*Next~DTP*348*D8*20261101~")
TEETH = member("021", DENTAL)


@pytest.mark.parametrize(
    ("loops", "found"),
    [
        ([HMO_ENDS, PPO_BEGINS], ("2026-01-01", None, "Next")),
        ([PPO_BEGINS, HMO_ENDS], ("2026-01-01", None, "Next")),
        ([TEETH, SUBSCRIBER], OPEN),
        ([SUBSCRIBER, TEETH], OPEN),
        ([SUBSCRIBER, HMO_ENDS], ("2026-01-01", "2026-10-31", "Gold")),
        ([SUBSCRIBER, member("024", "")], ("2026-01-01", "2026-11-20", "Gold")),
    ],
)
def test_several_loops_of_a_member_are_one_outcome(
    desk: Desk, loops: list[str], found: Access
) -> None:
    desk.load_834(SUBSCRIBER)
    file = desk.load_834(*loops)
    assert [line["row"] for line in desk.report(file)] == [8]
    assert access(desk) == found


def test_two_values_for_the_same_day_contradict_each_other_and_a_later_one_does_not(
    desk: Desk,
) -> None:
    desk.load_834(SUBSCRIBER)
    moved = TEETH.replace("Boston", "Salem")
    assert desk.outcomes(desk.load_834(SUBSCRIBER, moved)) == [
        (8, "refused", "repeated_differently")
    ]
    later = moved.replace("REF*0F", "DTP*303*D8*20261121~REF*0F")
    assert desk.outcomes(desk.load_834(SUBSCRIBER, later)) == [(8, "updated", "")]
    assert desk.members()[KEY]["city"] == "Salem"


LATER = "HD*021**HLT*Gold~DTP*348*D8*20270101~"
BEFORE = "HD*024**HLT*Gold~DTP*349*D8*20261231~"


@pytest.mark.parametrize(
    "end",
    [
        member("024", BEFORE),
        member("024", ""),
        member("001", BEFORE),
        member("001", BEFORE.replace("DTP*349", "DTP*348*D8*20270101~DTP*349")),
    ],
)
def test_an_end_before_the_first_day_ends_the_access_on_that_day(desk: Desk, end: str) -> None:
    desk.load_834(member("021", LATER))
    assert [code for _, code in desk.codes(desk.load_834(end))] == ["", "ends_on_first_day"]
    assert access(desk)[:2] == ("2027-01-01", "2027-01-01")
    wrong = member("021", LATER + "DTP*349*D8*20261231~")  # nobody called it an end
    assert desk.outcomes(desk.load_834(wrong)) == [(8, "refused", "expiry_before_effective")]


def test_an_ended_member_expires_on_the_files_date_once_and_under_its_plan_only(desk: Desk) -> None:
    end = member("024", "")
    assert desk.codes(desk.load_834(end)) == [("refused", "not_enrolled")]
    desk.load_834(SUBSCRIBER)
    assert desk.load_834(end, plan=1).counts == {"refused": 1}
    assert desk.ends() == {KEY: None}
    assert desk.load_834(end).counts == {"ended": 1, "lost": 1}
    assert desk.ends() == {KEY: "2026-11-20"}
    assert desk.load_834(end).counts == {"unchanged": 1}


def test_a_file_that_only_compares_says_so_and_each_difference_and_writes_nothing(
    desk: Desk,
) -> None:
    file = desk.load_834(SUBSCRIBER, purpose="4")
    assert (file.state, file.mode, file.counts) == ("done", "compare", {"refused": 1})
    assert desk.count("members") == 0
    assert "only_compared" in str(file.problem)
    assert '"verify": "full"' in str(file.problem)
    desk.load_834(SUBSCRIBER)
    before = desk.members(), desk.count("member_history")
    other = SUBSCRIBER.replace("*Sample*", "*Sampel*").replace("02134", "02135")
    file = desk.load_834(other, purpose="4")
    assert file.counts == {"unchanged": 1, "warned": 1}
    found = {(line["code"], line["field"]) for line in desk.report(file)}
    assert found == {("", ""), ("differs", "last_name"), ("differs", "zipcode")}
    assert (desk.members(), desk.count("member_history")) == before
    assert desk.load_834(SUBSCRIBER, purpose="4").counts == {"unchanged": 1}


@pytest.mark.parametrize(
    ("purpose", "code", "mode", "became"),
    [
        ("2", "021", FileMode.FULL, {"created": 1, "ended": 1, "lost": 1}),
        ("4", "030", FileMode.FULL, {"created": 1, "ended": 1, "lost": 1}),
        ("RX", "030", FileMode.CHANGE, {"created": 1}),
        ("4", "030", FileMode.CHANGE, {"created": 1}),
        ("2", "030", None, {"created": 1}),
    ],
)
def test_the_mode_of_the_upload_goes_before_what_the_file_says(
    desk: Desk, purpose: str, code: str, mode: FileMode | None, became: dict[str, int]
) -> None:
    desk.load_834(SUBSCRIBER)
    file = desk.load_834(kim(code=code), purpose=purpose, mode=mode)
    assert (file.state.value, file.counts) == ("done", became)
    assert mode in (None, file.mode)


def test_a_mapping_sends_rows_to_plans_and_a_stored_bad_one_fails_the_file(desk: Desk) -> None:
    for name, told in (("plan-99", ("refused", "not_found")), ("plan-1", ("created", ""))):
        mapping = {"834": IDENTIFY | {"plan": "HD04"}, "plans": {"Gold": name}}
        assert desk.codes(desk.load_834(SUBSCRIBER, mapping=mapping)) == [told]
    assert desk.members()[KEY]["plan_id"] == desk.customer.plan_ids[1]
    file = desk.hand_in(file_834().encode())
    with desk.db.write() as tx:  # an earlier version took it
        tx.execute(update(eligibility_files).values(mapping={"834": {"plan": "X"}}))
    assert "bad_mapping" in str(desk.work(file).problem)


def test_an_e_mail_of_another_record_is_dropped_and_never_refuses_the_member(desk: Desk) -> None:
    def mailed(loop: str, email: str) -> str:
        return loop.replace("N3*", f"PER*IP**EM*{email}~N3*")

    file = desk.load_834(mailed(SUBSCRIBER, "home@example.com"), mailed(kim(), "HOME@example.com"))
    assert desk.codes(file) == [("created", ""), ("created", ""), ("warned", "email_taken")]
    assert [each["email"] for each in desk.members().values()] == ["home@example.com", None]
    assert desk.count("invitations") == 0
    ended = kim(code="001", coverage="HD*024**HLT*Gold~DTP*349*D8*20260930~")
    file = desk.load_834(mailed(ended, "home@example.com"))
    assert desk.codes(file) == [("updated", ""), ("warned", "email_taken")]
    assert desk.ends()["FAMILY1-02"] == "2026-09-30"


def test_a_dropped_e_mail_is_taken_once_it_is_free_and_a_stored_one_stays(desk: Desk) -> None:
    both = csv_of([row(1, email="a@example.com"), row(2, email="a@example.com")])
    assert desk.load(both).counts == {"created": 2, "warned": 1}
    assert desk.load(both).counts == {"unchanged": 2, "warned": 1}
    desk.load(csv_of([row(1, email="b@example.com")]))
    assert desk.load(csv_of([row(2, email="a@example.com")])).counts == {"updated": 1}
    desk.load(csv_of([row(2, email="b@example.com", zipcode="02135")]))
    stored = desk.members()["E00002"]
    assert (stored["email"], stored["zipcode"]) == ("a@example.com", "02135")


GUIDE = (Path(__file__).parents[2] / "docs/834.md").read_text()
FIELDS = ("first_name", "effective_date", "expiry_date", "medical_plan_description")


def examples() -> Iterator[tuple[str, list[list[str]]]]:
    """The segments of each example, and the cells of the table below it."""
    for part in re.split("^### ", GUIDE.partition("\n## Examples\n")[2], flags=re.MULTILINE)[1:]:
        table = part.partition("|---|---|---|---|---|---|")[2].splitlines()
        lines = [line for line in table if line.startswith("| ")]
        text = part.partition("```x12\n")[2].partition("```")[0]
        yield text, [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def in_envelope(text: str, envelope: str) -> str:
    """The segments of members in the envelope of the first example, with the right count."""
    if text.startswith("ISA"):
        return text
    head, body = envelope.split("INS*", 1)
    tail = body[body.index("SE*") :]
    count = head.count("~") - 2 + text.count("~") + 1
    return head + text + re.sub(r"SE\*[0-9]+", f"SE*{count}", tail)


def shown(desk: Desk, file: EligibilityFile) -> list[list[str]]:
    """The table that the guide would show: the members that the file names."""
    report: dict[str, list[str]] = {}
    for line in desk.report(file):
        report.setdefault(line["external_id"] or "", []).append(line["code"] or line["outcome"])
    stored = desk.members()
    return [
        [key, *(stored.get(key, {}).get(name) or "" for name in FIELDS), ", ".join(codes)]
        for key, codes in sorted(report.items())
    ]


def test_each_example_does_what_its_table_says(desk: Desk) -> None:
    told = [*examples()]
    assert len(told) == 7
    [said] = re.findall("the mapping is `(.*?)`", GUIDE)
    for text, table in told:
        before = desk.members()
        file = desk.load(in_envelope(text, told[0][0]).encode(), mapping=json.loads(said))
        assert shown(desk, file) == sorted(table)
        after = desk.members()
        named = {cells[0] for cells in table}
        assert [key for key in before if before[key] != after[key] and key not in named] == []


def test_each_way_on_the_page_can_be_said(desk: Desk) -> None:
    ways = re.findall(
        r"^\| (`[^|]*`[^|]*) \| [^|]* \| (?:`[^|]*`)", GUIDE.partition("| way |")[2], re.MULTILINE
    )
    said = [way for cell in ways[:6] for way in re.findall("`([^`]+)`", cell)]
    assert len(said) == 8
    for way in said:
        assert parse_mapping({"834": {"identify": way}}).identify
    example = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)[0]
    assert parse_mapping(json.loads(example)).identify
