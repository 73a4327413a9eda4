"""Members as they are shown; those that are one person, or two, or renumbered: duplicates, merge,
distinct, rename.
"""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.db import Database
from frontdesk.eligibility import list_probes
from frontdesk.eligibility.tables import members
from tests.cli.conftest import CommandLine
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, member_body
from tests.files.loading import Desk, csv_of, row

KEEP = "AB 000001"
DROP = "AB 000002"
SAME: dict[str, Any] = {"last_name": "Same"}
Pair = tuple[int, int]


def post(api: Api, number: int, plan: int = 1, **fields: Any) -> Any:
    return api.post(f"/v2/plans/{plan}/eligibility", member_body(number, **fields))


def change(api: Api, external_id: str, **fields: Any) -> Any:
    return api.post("/v2/plans/1/eligibility", {"external_id": external_id} | fields)


@pytest.fixture
def pair(api: Api) -> Pair:
    """The ids of two members who look alike, the second with an invitation that waits."""
    first = post(api, 1, **SAME).json()["id"]
    return first, post(api, 2, **SAME, invite_immediately=True).json()["id"]


def test_a_member_is_shown_with_its_history(api: Api, cli: CommandLine, customer: Customer) -> None:
    created = post(api, 1).headers["X-Request-Id"]
    change(api, KEEP, last_name="Changed")
    member = cli.json("member", "show", KEEP)
    assert member["last_name"] == "Changed"
    shown = [member[name] for name in ("dob", "plan_id", "metadata")]
    assert shown == ["1977-01-11", 1, {"department": "North"}]
    assert {"uniqueness_scope", "email_folded"}.isdisjoint(member)
    first, second = member["history"]
    assert (first["outcome"], second["outcome"]) == ("created", "updated")
    assert second["changes"] == {"last_name": ["Sample", "Changed"]}
    assert (first["client"], first["request_id"]) == (customer.client_id, created)
    said = cli.text("member", "show", f" {KEEP} ", "--account", "1")
    for part in ("robin.1@example.com", "department: North", "last_name: Sample, Changed"):
        assert part in said


def test_reading_a_record_is_audited_and_errors_repeat_no_value(
    api: Api, cli: CommandLine, db: Database, pair: Pair
) -> None:
    before = cli.audit_trail()
    cli.json("member", "show", KEEP)
    *earlier, entry = cli.audit_trail()
    assert earlier == before
    assert (entry["action"], entry["account_id"], entry["subject_id"]) == (
        "member.read",
        1,
        pair[0],
    )
    assert KEEP not in str(entry)
    other = str(make_customer(db, name="Other").account_id)
    foreign = cli.refused("member", "show", KEEP, "--account", other)
    assert "There is no such eligible member." in foreign
    assert cli.refused("member", "show", "ab 000001") == foreign
    assert "WHO must not be blank" in cli.refused("member", "show", " ")


def test_only_member_show_prints_a_persons_data(api: Api, cli: CommandLine, pair: Pair) -> None:
    for words in ("invitations list", "plan show 1", "queue list", "client list", "check"):
        said = cli.text(*words.split()) + str(cli.json(*words.split()))
        values = (
            value for name, value in member_body(2, **SAME).items() if name != "effective_date"
        )
        assert not any(str(value) in said for value in values)


def test_pairs_that_look_alike_are_listed_until_called_distinct(
    api: Api, cli: CommandLine, pair: Pair
) -> None:
    third = post(api, 3, **SAME, plan=2).json()["id"]
    post(api, 4, **SAME, expiry_date="2026-01-01")  # over
    with_third = [(pair[0], third), (pair[1], third)]
    found = cli.json("member", "duplicates", "--account", "1")
    assert [(each["id"], each["other_id"]) for each in found] == [pair, *with_third]
    assert found[1]["other_external_id"] == "AB 000003"
    assert (found[1]["plan_id"], found[1]["other_plan_id"]) == (1, 2)
    page = cli.json("member", "duplicates", "--limit", "1", "--after", str(pair[0]), str(pair[1]))
    assert [(each["id"], each["other_id"]) for each in page] == with_third[:1]
    assert f"--after {pair[0]} {pair[1]}" in cli.text("member", "duplicates", "--limit", "1")
    for both in ((DROP, KEEP), (KEEP, DROP)):
        assert cli.json("member", "distinct", *both) == {"distinct": [*pair]}
    found = cli.json("member", "duplicates")
    assert [(each["id"], each["other_id"]) for each in found] == with_third


def test_a_gap_of_a_million_million_ids_makes_no_search_for_pairs_longer(
    db: Database, cli: CommandLine, pair: Pair
) -> None:
    far = 10**12
    keys = {"external_id": "AB 000009", "member_id": "M-9", "email": None, "email_folded": None}
    with db.write() as tx:
        [known] = tx.execute(select(members).where(members.c.id == pair[1])).mappings()
        tx.execute(members.insert().values(dict(known) | keys | {"id": far}))
    expected = [pair, (pair[0], far), (pair[1], far)]
    found = cli.json("member", "duplicates")
    assert [(each["id"], each["other_id"]) for each in found] == expected
    found = cli.json("member", "duplicates", "--after", str(pair[0]), str(far))
    assert [(each["id"], each["other_id"]) for each in found] == expected[2:]


def test_a_merged_identifier_leads_to_the_one_that_is_kept(
    api: Api, cli: CommandLine, pair: Pair
) -> None:
    before = cli.json("member", "show", KEEP)
    cli.json("member", "merge", KEEP, DROP)
    shown = cli.json("member", "show", DROP)
    new = ("history", "updated_at", "invitations")
    assert shown == {**before, **{name: shown[name] for name in new}}
    assert [each["state"] for each in shown["invitations"]] == ["cancelled"]
    assert [entry["member_id"] for entry in shown["history"]] == [
        pair[0],
        pair[1],
        pair[1],
        pair[0],
    ]
    assert cli.json("member", "duplicates") == []
    [invitation] = [
        each for each in cli.json("invitations", "list") if each["delivery"] == "immediate"
    ]
    assert invitation["state"] == "cancelled"
    # The keys of the merged one are free, its external_id finds the other, whose own stays.
    answer = change(api, DROP, member_id="M-000002", email="robin.2@example.com", city="Salem")
    assert (answer.status_code, answer.headers["Eligibility-Outcome"]) == (200, "updated")
    assert (answer.json()["id"], answer.json()["external_id"]) == (pair[0], KEEP)
    assert change(api, DROP, city="Salem").headers["Eligibility-Outcome"] == "unchanged"
    eligible = cli.json("member", "eligible", DROP, "--on", "2026-06-01")
    assert (eligible["eligible"], eligible["plan_id"]) == (True, 1)
    actions = [
        entry["action"] for entry in cli.audit_trail() if entry["action"].startswith("member.m")
    ]
    assert actions == ["member.merged"]


def test_a_merge_can_be_taken_back_unless_a_key_is_taken(
    api: Api, cli: CommandLine, pair: Pair
) -> None:
    before = cli.json("member", "show", DROP)
    cli.json("member", "merge", KEEP, DROP)
    change(api, KEEP, member_id="M-000002")
    assert "member_id is taken" in cli.refused("member", "merge", "--undo", KEEP, DROP)
    change(api, KEEP, member_id="M-000001")
    cli.json("member", "merge", "--undo", KEEP, DROP)
    after = cli.json("member", "show", DROP)
    changed = dict.fromkeys(("history", "updated_at", "mail", "invitations"))
    assert {**after, **changed} == {**before, **changed}
    assert len(cli.json("member", "duplicates")) == 1
    assert "not merged" in cli.refused("member", "merge", "--undo", KEEP, DROP)


def test_merges_in_a_row_lead_to_the_last_one(api: Api, cli: CommandLine, pair: Pair) -> None:
    third = post(api, 3, **SAME).json()["id"]
    cli.json("member", "merge", KEEP, DROP)
    cli.json("member", "merge", "AB 000003", KEEP)
    assert change(api, DROP, city="Salem").json()["id"] == third
    assert cli.json("member", "show", DROP)["id"] == third
    cli.json("member", "merge", "--undo", "AB 000003", KEEP)
    assert change(api, DROP, city="Boston").json()["id"] == pair[0]


def test_what_cannot_be_merged_says_why(
    api: Api, cli: CommandLine, db: Database, pair: Pair
) -> None:
    other = make_customer(db, name="Other")
    post(api.as_(other.token), 8, plan=other.plan_ids[0])
    post(api, 3)
    assert "There is no such eligible member" in cli.refused("member", "merge", KEEP, "AB 000008")
    assert "same member" in cli.refused("member", "merge", KEEP, KEEP)
    cli.json("member", "hold", DROP, "--reference", "Case 1")
    assert "legal hold" in cli.refused("member", "merge", KEEP, DROP)
    cli.json("member", "release", DROP)
    cli.json("member", "merge", KEEP, DROP)
    assert "merged before" in cli.refused("member", "merge", "AB 000003", DROP)
    cli.json("member", "hold", KEEP, "--reference", "Case 1")
    assert len(cli.json("member", "holds")) == 2  # both rows are the person's
    cli.json("member", "release", DROP)
    cli.json("member", "erase", DROP, "--yes")
    assert "There is no such eligible member" in cli.refused("member", "show", KEEP)


def test_a_full_file_that_names_a_merged_member_names_the_one_that_is_kept(
    api: Api, cli: CommandLine, db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    desk.load(csv_of(row(number, **SAME) for number in (1, 2, 3)), full=True)
    cli.json("member", "merge", "E00001", "E00002")
    file = desk.load(csv_of(row(number, **SAME) for number in (2, 3)), full=True)
    assert (file.state, file.members_missing) == ("done", 0)
    outcomes = [line[1] for line in desk.outcomes(file)]
    assert outcomes == ["updated", "unchanged"]  # its member_id is M00002 now
    file = desk.load(csv_of([row(3, **SAME)]), full=True)
    assert [line["external_id"] for line in desk.report(file) if line["outcome"] == "ended"] == [
        "E00001"
    ]


def test_a_file_that_touched_a_merged_member_leaves_it_alone_when_it_is_undone(
    cli: CommandLine, db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    file = desk.load(csv_of(row(number, **SAME) for number in (1, 2, 3)))
    cli.json("member", "merge", "E00001", "E00002")
    outcomes = [(line[1], line[2]) for line in desk.outcomes(desk.undo(file))]
    assert outcomes == [("withdrawn", ""), *[("refused", "changed_since")] * 2]


def test_a_member_gets_another_identifier(api: Api, cli: CommandLine, pair: Pair) -> None:
    assert cli.json("member", "rename", KEEP, "NEW 1") == [{"row": 1, "outcome": "renamed"}]
    shown = cli.json("member", "show", "NEW 1")
    assert (shown["id"], shown["history"][-1]["changes"]) == (
        pair[0],
        {"external_id": [KEEP, "NEW 1"]},
    )
    assert change(api, KEEP).status_code == 422  # free
    refused = cli.run("member", "rename", "NEW 1", DROP)
    assert (refused.exit_code, "not_unique" in refused.stdout) == (1, True)
    assert "no_such_member" in cli.run("member", "rename", KEEP, "NEW 2").stdout


def test_a_renumbering_is_followed_by_a_file(
    api: Api, cli: CommandLine, db: Database, customer: Customer, clock: SetClock, tmp_path: Path
) -> None:
    desk = Desk(db, customer, clock)
    pairs = tmp_path / "pairs.csv"
    other = make_customer(db, name="Other")
    desk.load(csv_of(map(row, range(1, 1202))))
    post(api.as_(other.token), 8, plan=other.plan_ids[0])
    lines = [f"E{number:05d},N{number}" for number in range(1, 1201)]
    pairs.write_text(
        "\n".join(["old,new", *lines, "E01201,AB 000008", "E09999,N9999", "E00001,N5"])
    )
    outcomes = {}
    for words in (["--dry-run"], []):
        result = cli.run("member", "rename", "--csv", str(pairs), "--account", "1", *words)
        assert result.exit_code == 1
        outcomes[bool(words)] = result.stdout.replace("would be ", "")
    assert outcomes[True] == outcomes[False]
    for failed in ("1201 not_unique", "1202 no_such_member", "1203 no_such_member"):
        assert failed in " ".join(outcomes[True].split())
    assert "1200 of 1203 renamed." in outcomes[False]
    assert (
        sum(each.taken for each in db.ask(lambda tx: list_probes(tx, clock().date().isoformat())))
        <= 2
    )
    again = desk.load(csv_of(row(number, external_id=f"N{number}") for number in range(1, 1201)))
    assert again.counts == {"unchanged": 1200}


@pytest.mark.parametrize("text", ["a,b\n1,2", "old,new\n1", "old,new\n1, \n"])
def test_a_file_of_another_shape_is_refused(
    bare_cli: CommandLine, tmp_path: Path, text: str
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(text)
    assert bare_cli.refused("member", "rename", "--csv", str(pairs))


def test_a_member_id_that_equals_the_identifier_is_renamed_with_it(
    api: Api, cli: CommandLine
) -> None:
    post(api, 1, external_id="F1-01", member_id="F1-01")
    assert cli.json("member", "rename", "F1-01", "OLD-1") == [{"row": 1, "outcome": "renamed"}]
    assert cli.json("member", "show", "OLD-1")["member_id"] == "OLD-1"
