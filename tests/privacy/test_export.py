"""A person can be told everything that is kept, and that it was told is kept too."""

import re
from pathlib import Path
from typing import Any

import pytest

from frontdesk.audit import AuditQuery, list_entries
from frontdesk.db.schema import metadata
from frontdesk.reach import EVERY
from tests.cli.conftest import CommandLine
from tests.files.loading import csv_of, row
from tests.privacy.conftest import KEY, SOUGHT, TABLES_OF_PERSONS, Life

# Their files are looked at through the lines of the reports. Stored answers are copies, deleted
# after a day. The disclosures of the last hour are in the audit entries, too, and a search has ids
# only.
NOT_BY_ITSELF = {
    "disclosures",
    "people_searches",
    "eligibility_files",
    "file_parts",
    "file_drafts",
    "draft_parts",
    "stored_answers",
}


def test_everything_that_an_erasure_takes_is_exported_first(life: Life) -> None:
    answer = life.operator().get(f"{life.operators_path}/export")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    tables = answer.json()["tables"]
    by_member = {
        name
        for name, table in metadata.tables.items()
        if {"member_id", "invitation_id"} & {*table.c.keys()}
    }
    assert (
        set(tables)
        == (TABLES_OF_PERSONS | by_member | {"audit_entries", "distinct_members"}) - NOT_BY_ITSELF
    )
    assert [value for value in SOUGHT if value not in answer.text] == []
    assert "AB 000005" not in answer.text  # the neighbour's
    assert {line["outcome"] for line in tables["file_rows"]} == {"updated", "refused", "restored"}
    actions = {entry["action"] for entry in tables["audit_entries"]}
    assert actions == {"eligibility.created", "eligibility.updated"}
    [entry] = life.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="member.exported")))
    assert (entry["subject_id"], entry["request_id"]) == (
        life.member_id,
        answer.headers["x-request-id"],
    )


def test_a_member_is_erased_over_http_as_often_as_it_is_asked_for(life: Life) -> None:
    operator = life.operator()
    path = life.operators_path
    waiting = life.desk.hand_in(csv_of([row(90)]))
    refused = operator.request("DELETE", path)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "files_unfinished")
    assert f" {waiting.id}." in refused.json()["detail"]
    assert KEY in str([*life.cells()])
    life.desk.work(waiting)
    first = operator.request("DELETE", path)
    again = operator.request("DELETE", path)
    fact: dict[str, Any] = {"member_id": life.member_id, "account_id": life.customer.account_id}
    fact |= {"erased_at": "2026-11-20T12:00:00Z", "cause": "request"}
    assert first.json() == fact | {"is_new": True}
    assert (again.status_code, again.json()) == (200, fact | {"is_new": False})
    assert life.mentions() == set()
    [entry] = life.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="member.erased")))
    assert (entry["request_id"], len(entry["detail"]["network"])) == (
        first.headers["X-Request-Id"],
        16,
    )
    left = operator.get(f"{path}/export").json()["tables"]
    assert (left["members"][0]["external_id"], left["erasures"][0]["cause"]) == ("", "request")
    for unknown in ("999", "0x1"):
        assert operator.request("DELETE", f"/operator/v1/members/{unknown}").status_code == 404
    # A customer can't, of its own members neither.
    assert life.api.request("DELETE", path).status_code == 403
    assert life.api.get(f"{path}/export").status_code == 403


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_command_line_shows_erases_holds_and_releases(life: Life, database_url: str) -> None:
    cli = CommandLine(database_url)
    account = str(life.customer.account_id)
    named = (KEY, "--account", account)
    [told] = cli.json("member", "export", *named)
    assert told["tables"]["members"][0]["last_name"] == "Quillfeather"
    assert cli.json("member", "erase", *named) == {"would_erase": [life.member_id]}
    assert "would be erased for good" in cli.text("member", "erase", *named)
    assert cli.json("member", "hold", *named, "--reference", "Case 1") == {"held": [life.member_id]}
    assert cli.json("member", "holds")[0]["reference"] == "Case 1"
    assert "under legal hold (Case 1)" in cli.refused("member", "erase", *named, "--yes")
    assert cli.json("member", "release", *named) == {"released": [life.member_id]}
    assert "No member is under legal hold." in cli.text("member", "holds")
    assert f"Member {life.member_id} is erased." in cli.text("member", "erase", *named, "--yes")
    by_id = ("--id", str(life.member_id), "--yes")
    assert "had been erased before" in cli.text("member", "erase", *by_id)
    assert [each["is_new"] for each in cli.json("member", "erase", *by_id)] == [False]
    assert "a whole number" in cli.refused("member", "erase", "--id", "AB 1", status=2)
    assert "is erased" in cli.refused(
        "member", "hold", "--id", str(life.member_id), "--reference", "Case 2"
    )
    actions = [
        entry["action"] for entry in cli.audit_trail() if entry["action"].startswith("member.")
    ]
    assert actions == ["member.exported", "member.held", "member.released", "member.erased"]


def test_the_page_says_what_happens_to_each_table() -> None:
    page = (Path(__file__).parents[2] / "docs/erasure.md").read_text()
    section = page.partition("## What happens to each value")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \| \w", section, re.MULTILINE)) == TABLES_OF_PERSONS
