"""`frontdesk queue backtest` on stored events, on a CSV, on nothing."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from frontdesk.backtest.figures import BacktestFigures
from frontdesk.backtest.verdict import Verdict, verdict_of
from frontdesk.cli import queue_backtest
from frontdesk.cli.queue_backtest import FAULTS_SHOWN, LEGEND
from frontdesk.clock import system_clock
from frontdesk.queues.ingest import ingest
from tests.cli.conftest import CommandLine
from tests.queues.feed import ENDED, JOINED, ON, STARTED, event, make_clinic

HEAD = "joined,started,ended,left,doctor,plan\n"


def seen(visit: str, plan: int, joined: float, waited: float) -> list[Any]:
    return [
        event(f"j{visit}", JOINED, joined, plan_id=plan, visit=visit),
        event(f"s{visit}", STARTED, joined + waited, plan_id=plan, visit=visit, doctor="a"),
        event(f"e{visit}", ENDED, joined + waited + 300, plan_id=plan, visit=visit),
    ]


@pytest.fixture
def clinic_with_a_past(cli: CommandLine) -> int:
    """Its plan: one patient was seen at once, one waited 90 s beside an idle doctor, one joined
    before the last ten days.
    """
    db = cli.open()
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    start = system_clock().replace(minute=0) - timedelta(days=5)
    events = [
        event("on", ON, -100, provider_group_id=clinic.group_id, doctor="a"),
        *seen("1", plan, 0, 0),
        *seen("2", plan, 1000, 90),
    ]
    base = events[1].at
    told = [one._replace(at=start + (one.at - base)) for one in events]
    with db.write() as tx:
        for one in told:
            ingest(tx, [one], now=one.at)
    db.close()
    return plan


def test_stored_events_are_judged_and_nothing_is_stored(
    cli: CommandLine, clinic_with_a_past: int
) -> None:
    before = cli.audit_trail()
    found = cli.json("queue", "backtest", "--days", "10")
    counts = [found[name] for name in ("judged", "left_unseen", "nobody_on_duty", "bad_rows")]
    assert counts == [2, 0, 0, 0]
    everyone = found["all"]
    assert (everyone["matched"], everyone["mean_wait_seconds"]) == (2, 45.0)
    assert (everyone["mean_error_seconds"], everyone["bias_seconds"]) == (45.0, -45.0)
    assert everyone["wrong_zero_share"] == 0.5
    assert [everyone[f"{name}_share"] for name in ("coverage", "below", "above")] == [None] * 3
    assert [rival["name"] for rival in everyone["rivals"]][:2] == ["AHT x position", "last wait"]
    [of_plan] = found["by_plan"]
    assert (of_plan["plan_id"], of_plan["plan"], of_plan["matched"]) == (
        clinic_with_a_past,
        "Plan 0",
        2,
    )
    assert sum(one["matched"] for one in found["by_hour"]) == 2
    assert [one["position"] for one in found["by_position"]] == ["ready"]
    assert cli.audit_trail() == before

    assert cli.json("queue", "backtest", "--days", "3")["judged"] == 0  # they joined before
    text = cli.text("queue", "backtest")
    for part in ("2 patients judged", "AHT x position", "plan id", "Plan 0", "0:45 min"):
        assert part in text


def test_an_empty_database_is_no_error(cli: CommandLine) -> None:
    names = ("judged", "left_unseen", "nobody_on_duty", "bad_rows", "rows_without_end")
    found = cli.json("queue", "backtest")
    assert (found["days"], found["warnings"], found["time_zone"]) == (30, [], "UTC")
    assert {found[name] for name in names} == {0}
    assert found["verdict"]["code"] == "too_early"
    assert "No patient that joined in the last 30 days" in cli.text("queue", "backtest")


def test_a_csv_is_judged_without_a_database(bare_cli: CommandLine, tmp_path: Path) -> None:
    times = (f"2026-11-20T{8 + n // 6:02d}:{n % 6}" for n in range(12))
    rows = [f"{at}0:00Z,{at}1:00Z,{at}9:00Z,,dr-1,Gold\n" for at in times]
    file = tmp_path / "encounters.csv"
    lost = "2026-11-20T08:00:00Z,,,,,Gold\n"
    file.write_text("\ufeff" + HEAD + "".join([*rows, lost]), encoding="utf-8")
    found = bare_cli.json("queue", "backtest", "--csv", str(file))
    assert (found["judged"], found["nobody_on_duty"], found["rows_without_end"]) == (11, 1, 1)
    assert [(one["plan_id"], one["plan"]) for one in found["by_plan"]] == [(None, "Gold")]
    text = bare_cli.text("queue", "backtest", "--csv", str(file))
    assert "Gold" in text
    assert "1 row without an end of the wait left out." in text
    assert "plan id" not in text
    file.write_text(HEAD.replace("plan", "room") + "".join(rows), encoding="utf-8")
    assert "By plan" not in bare_cli.text("queue", "backtest", "--csv", str(file))


def test_a_file_with_hardly_a_patient_is_told_in_plain_words(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "encounters.csv"
    asked = ("queue", "backtest", "--csv", str(file), "--days", "1")
    none = "No patient that joined in the last day and was seen can be judged."
    file.write_text(HEAD)
    assert bare_cli.text(*asked).splitlines() == ["No row of the file says how a wait ended.", none]
    file.write_text(HEAD + "2026-11-20 09:00,,,,,p\n")
    _, counts, last = bare_cli.text(*asked).splitlines()
    left_out = "1 row without an end of the wait left out."
    assert (counts, last) == (f"No row of the file says how a wait ended; {left_out}", none)
    file.write_text(HEAD + "2026-11-20 09:00,,,2026-11-20 09:05,,p\n")
    days, counts, last = bare_cli.text(*asked).splitlines()
    assert days.startswith("Judged: the last day. 1 of the file's 1 patient came from 2026-11-20")
    assert (counts, last) == ("0 patients judged; 1 left unseen.", none)


def test_every_bad_row_is_told_and_may_be_left_out(bare_cli: CommandLine, tmp_path: Path) -> None:
    good = "2026-11-20T08:{0}:00Z,2026-11-20T08:{0}:30Z,,,a,p\n"
    file = tmp_path / "encounters.csv"
    file.write_text(
        HEAD + good.format("00") * 2 + good.format("02") + "soon,,,,,\n" * (FAULTS_SHOWN + 2)
    )
    told = bare_cli.refused("queue", "backtest", "--csv", str(file), status=1)
    assert "line 5: joined is not a time such as 2026-11-20T09:15:00Z" in told
    assert "and 2 more" in told
    assert "soon" not in told
    found = bare_cli.json("queue", "backtest", "--csv", str(file), "--skip-bad-rows")
    assert found["bad_rows"] == FAULTS_SHOWN + 2
    assert "repeated_rows" in {warning["code"] for warning in found["warnings"]}


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        (b"", "The first line of the file has to name these columns"),
        (b"PK\x03\x04\xff\xfe", "Save the file as CSV in UTF-8"),
        (b"id,name\n1,x\n", "The first line of the file has to name these columns"),
        (HEAD.encode("utf-16"), "Save the file as CSV in UTF-8"),
        (HEAD.encode() + b"20.11.2026 09:15,20.11.2026 09:16,,,a,\n", "yyyy-mm-dd hh:mm:ss"),
        (HEAD.encode() + b"2026-11-20 09:15,2026-11-20 09:14,,,a,\n", "--skip-bad-rows"),
    ],
)
def test_another_file_is_always_refused_with_a_remedy(
    bare_cli: CommandLine, tmp_path: Path, content: bytes, remedy: str
) -> None:
    file = tmp_path / "other.csv"
    file.write_bytes(content)
    told = bare_cli.refused("queue", "backtest", "--csv", str(file), "--skip-bad-rows", status=1)
    assert "The file has faults" in told
    assert remedy in told


def test_a_file_with_a_plan_or_a_class_for_each_call_is_refused(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    """Also with --skip-bad-rows; a file with as many as there may be is judged."""
    row = "2026-11-20 09:15,2026-11-20 09:16,2026-11-20 09:17,,a,{},{}\n"
    head = HEAD.replace("\n", ",class\n")
    file = tmp_path / "encounters.csv"
    asked = ("queue", "backtest", "--csv", str(file))
    file.write_text(head + "".join(row.format(f"call {n}", f"c{n}") for n in range(101)))
    told = bare_cli.refused(*asked, "--skip-bad-rows", status=1)
    assert "The file has 101 plans, and at most 100 can be replayed." in told
    assert "If the number of the call stands in `plan`" in told
    assert "split the file" in told
    assert "The file has 101 classes, and at most 100 can be replayed." in told
    assert "If the number of the call stands in `class`" in told

    waits = row.replace(",2026-11-20 09:16,2026-11-20 09:17", ",,")  # left out: no end of the wait
    many = [waits.format(f"queue {n}", f"c{n}") for n in range(99)]
    last = [waits.format("queue 99", "c99"), row.format("queue 99", ""), row.format("", "")]
    file.write_text(head + "".join([*many, *last]))
    assert bare_cli.json(*asked)["patients"] == 2


def test_what_is_wrong_with_a_past_is_said_before_its_figures(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    # local, over a change of the clock
    times = ("01:40", "01:55", "01:05", "01:30", "02:10", "02:30")
    file = tmp_path / "encounters.csv"
    file.write_text(
        HEAD + "".join(f"2026-11-01 {at}:00,2026-11-01 {at}:20,,,a,p\n" for at in times)
    )
    asked = ("queue", "backtest", "--csv", str(file))
    warnings = bare_cli.json(*asked)["warnings"]
    assert [(warning["code"], warning["lines"]) for warning in warnings] == [
        ("times_go_back", [4]),
        ("no_ends", []),
    ]
    lines = bare_cli.text(*asked).splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["Warning", "Warning"]
    assert lines[2].startswith("It is too early to tell: 5 patients can be judged")
    assert lines[3] == "Before you rely on this, settle the warnings above."
    told = bare_cli.refused(*asked, "--time-zone", "America/New_York", status=1)
    assert "line 2: joined exists twice in the time zone: write it with its offset" in told


def test_a_time_zone_that_is_not_known_and_a_file_that_is_not_there_are_told(
    bare_cli: CommandLine,
) -> None:
    asked = ("queue", "backtest", "--csv", "no/such.csv")
    assert "can't be read" in bare_cli.refused(*asked, status=1)
    assert "does not know the time zone" in bare_cli.refused(
        *asked, "--time-zone", "../x", status=2
    )


def test_a_report_begins_with_its_verdict_and_its_days_and_ends_with_its_words(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    rows = (
        f"2026-11-{day:02d} 09:{at:02d},2026-11-{day:02d} 09:{at + 1:02d},"
        f"2026-11-{day:02d} 09:{at + 2:02d},,a,p,{'urgent' if at % 2 else ''}\n"
        for day in range(1, 9)
        for at in range(50)
    )
    file = tmp_path / "encounters.csv"
    file.write_text(HEAD.replace("\n", ",class\n") + "".join(rows))
    asked = ("queue", "backtest", "--csv", str(file), "--time-zone", "America/New_York", "--days")
    found = bare_cli.json(*asked, "5")
    assert (found["from"], found["until"]) == (
        "2026-11-03T09:49:00-05:00",
        "2026-11-08T09:49:00-05:00",
    )
    assert (found["patients"], found["file_patients"]) == (251, 400)
    assert (found["judged"], found["nobody_on_duty"]) == (246, 5)  # the first of each day
    assert found["time_zone"] == "America/New_York"
    assert [one["hour"] for one in found["by_hour"]] == [9]
    assert [one["class"] for one in found["by_class"]] == [None, "urgent"]
    assert set(found["verdict"]) == {"code", "message"}
    lines = bare_cli.text(*asked, "5").splitlines()
    assert lines[0] == found["verdict"]["message"]
    days = "251 of the file's 400 patients came from 2026-11-03 09:49 to 2026-11-08 09:49"
    assert lines[1] == f"Judged: the last 5 days. {days} (America/New_York)."
    assert "By hour of the day (America/New_York)" in lines
    assert "By class" in lines
    assert lines[-len(LEGEND) :] == [f"  {word}: {meaning}" for word, meaning in LEGEND.items()]
    assert {word.strip() for line in lines for word in line.split("  ")} >= {
        *("mean error", "bias", "wrong zero", "coverage", "best rival", "below best rival"),
        "matched",
    }


def test_a_verdict_looks_at_each_plan_class_and_position(
    bare_cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []

    def note(everyone: BacktestFigures, groups: Mapping[str, BacktestFigures]) -> Verdict:
        asked.append(set(groups))
        return verdict_of(everyone, groups)

    monkeypatch.setattr(queue_backtest, "verdict_of", note)
    kinds = ("Gold,", "Gold,urgent", "Silver,new")
    rows = (
        f"2026-11-20 09:{n:02d},2026-11-20 09:{n + 1:02d},2026-11-20 09:{n + 5:02d},,a,{kinds[n % 3]}\n"
        for n in range(12)
    )
    file = tmp_path / "encounters.csv"
    file.write_text(HEAD.replace("\n", ",class\n") + "".join(rows))
    bare_cli.text("queue", "backtest", "--csv", str(file))
    [groups] = asked
    places = {name for name in groups if name.startswith("position ")}
    assert places
    assert groups - places == {'plan "Gold"', 'plan "Silver"', 'class "urgent"', 'class "new"'}


def test_a_late_end_and_a_late_row_do_not_empty_a_file(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    good = "2026-10-{0:02d}T08:{1:02d}:00Z,2026-10-{0:02d}T08:{1:02d}:30Z,{2}T08:59:00Z,,a,p\n"
    rows = [good.format(1 + n // 20, n % 20, f"2026-10-{1 + n // 20:02d}") for n in range(60)]
    file = tmp_path / "encounters.csv"
    asked = ("queue", "backtest", "--csv", str(file))
    file.write_text(HEAD + "".join(rows) + good.format(3, 30, "2026-11-19"))
    found = bare_cli.json(*asked)
    assert (found["judged"], found["patients"], found["file_patients"]) == (58, 61, 61)
    assert [(one["code"], one["lines"]) for one in found["warnings"]][:1] == [("late_ends", [62])]

    file.write_text(HEAD + "".join(rows) + good.format(3, 30, "2062-10-03"))
    told = bare_cli.refused(*asked, status=1)
    assert "line 62: ended is more than a day in the future" in told

    later = "2026-11-28T08:00:00Z,2026-11-28T08:01:00Z,2026-11-28T08:05:00Z,,a,p\n"
    file.write_text(HEAD + "".join(rows) + later)
    found = bare_cli.json(*asked, "--days", "60")
    assert (found["patients"], found["warnings"]) == (61, [])
    found = bare_cli.json(*asked, "--days", "30")
    assert (found["patients"], found["file_patients"]) == (1, 61)
    [warning] = found["warnings"]
    assert (warning["code"], warning["lines"]) == ("rows_apart", [62])
    assert bare_cli.json(*asked)["warnings"] == bare_cli.json(*asked, "--days", "1")["warnings"]
    [local] = bare_cli.json(*asked, "--time-zone", "Asia/Tokyo")["warnings"]
    assert "2026-11-28 08:00+00:00" in warning["message"]
    assert "2026-11-28 17:00+09:00" in local["message"]
