"""`POST /sandbox/reset`: an account of a sandbox starts over, and no other account notices it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.access.model import Scope
from frontdesk.audit import Requester, list_entries
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.db.schema import metadata
from frontdesk.eligibility.people import lock_pair, merge
from frontdesk.files import list_mappings
from frontdesk.files.actions import save_mapping
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import FileStep, MappingName
from frontdesk.files.run import run_next
from frontdesk.mailbox import list_messages
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.privacy.erasure import find_persons, place_hold, release_hold
from frontdesk.reach import EVERY
from frontdesk.sandbox import ACCOUNT, SAMPLE_MAPPING, door
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, member_body
from tests.files.loading import csv_of, row
from tests.privacy.conftest import KEY, VALUES, Life, life

__all__ = ["life"]

RESETS = frozenset({Scope.CUSTOMER, Scope.SANDBOX_RESET, Scope.EVENTS_READ, Scope.WEBHOOKS_MANAGE})


@pytest.fixture
def customer(db: Database) -> Customer:
    """One whose client may reset the account."""
    return make_customer(db, scopes=RESETS)


def reset(api: Api, status: int = 200) -> Any:
    answer = api.post("/sandbox/reset")
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status == 200 else answer


def deliver(life: Life) -> None:
    options = WorkerOptions(poll_seconds=0.02, read_time=lambda _: life.clock())
    worker = DeliveryWorker(life.config, life.db, MailCatcher(life.db, life.clock), options)
    while worker.turn():
        pass
    worker.close()


def enrol(life: Life, number: int, **fields: Any) -> Any:
    return life.api.post(life.path, member_body(number, **fields))


def save(life: Life, customer: Customer, name: str) -> None:
    with life.db.write() as tx:
        requester = Requester("someone", "r", life.clock())
        save_mapping(
            tx,
            MappingName(customer.account_id, name),
            {"sheet": "Members"},
            requester,
            default=True,
        )


def trail(db: Database) -> list[dict[str, Any]]:
    return db.ask(lambda tx: list_entries(tx, EVERY, limit=1000))[::-1]


def rows_in(db: Database, *tables: str) -> list[Any]:
    with db.read() as tx:
        return [row for name in tables for row in tx.execute(select(metadata.tables[name]))]


def test_a_reset_leaves_no_value_of_a_member_and_frees_every_key(life: Life) -> None:
    save(life, life.customer, "own")
    waiting = life.api.post(
        f"{life.path}-files", content=csv_of([row(3)]), headers={"Content-Type": "text/csv"}
    )
    assert waiting.status_code == 202
    before = trail(life.db)
    assert reset(life.api) == {"type": "sandbox_resets", "files": 7, "members": 4}
    assert life.mentions() == set()
    assert life.api.get("/v2/eligibility-files").json()["data"] == []
    assert life.api.get("/v2/eligibility-mappings").json()["data"] == []
    assert life.db.ask(list_messages) == []
    assert (
        rows_in(
            life.db,
            "file_rows",
            "file_lists",
            "file_unchanged",
            "file_parts",
            "eligibility_files",
            "invitation_links",
        )
        == []
    )
    again = life.api.post(life.path, VALUES | {"gender": "female", "effective_date": "2026-01-01"})
    assert again.status_code == 201
    assert again.json()["id"] not in {row.member_id for row in rows_in(life.db, "erasures")}
    after = trail(life.db)
    assert after[: len(before)] == before
    [entry] = [entry for entry in after if entry["action"] == "sandbox.reset"]
    assert "file.cancelled" in [entry["action"] for entry in after[len(before) :]]
    assert (entry["actor"], entry["account_id"]) == (
        life.customer.client_id,
        life.customer.account_id,
    )
    assert reset(life.api) == {"type": "sandbox_resets", "files": 0, "members": 1}
    assert reset(life.api) == {"type": "sandbox_resets", "files": 0, "members": 0}


def test_an_address_that_bounced_is_invited_again_after_a_reset(life: Life) -> None:
    mailed: dict[str, Any] = {"email": "bounce+7@example.com", "invite_immediately": True}
    told = []
    for number in (21, 22):
        told.append(enrol(life, number, **mailed).headers["Invitation"])
        deliver(life)
        assert (
            life.api.post(life.path, {"external_id": f"AB {number:06d}", "email": None}).status_code
            == 200
        )
        told.append(enrol(life, number + 10, **mailed).headers["Invitation"])
        reset(life.api)
    assert told == ["immediate", "none; reason=suppressed"] * 2


def test_an_address_that_another_account_has_suppressed_stays_so(life: Life) -> None:
    mailed: dict[str, Any] = {"email": "bounce+9@example.com", "invite_immediately": True}
    assert enrol(life, 21, **mailed).headers["Invitation"] == "immediate"
    deliver(life)
    assert life.api.post(life.path, {"external_id": "AB 000021", "email": None}).status_code == 200
    other = make_customer(life.db, name="Other", scopes=RESETS)
    theirs = Life(life.api.as_(other.token), life.db, life.clock, other, life.config, life.desk)
    assert enrol(theirs, 22, **mailed).status_code == 201
    deliver(life)
    reset(theirs.api)
    assert enrol(life, 23, **mailed).headers["Invitation"] == "none; reason=suppressed"


def rows_of(db: Database, account_id: int, others: set[str]) -> dict[str, list[Any]]:
    """All rows of the account, and all of the tables without one, but for those of `others`."""
    found = {}
    with db.read() as tx:
        for table in metadata.sorted_tables:
            query = select(table)
            if "account_id" in table.c:
                query = query.where(table.c.account_id == account_id)
            elif table.name in others:
                continue
            found[table.name] = sorted(map(repr, tx.execute(query)))
    return found


def test_another_account_keeps_everything(life: Life) -> None:
    other = make_customer(life.db, name="Other", scopes=RESETS)
    mine = Life(life.api.as_(other.token), life.db, life.clock, other, life.config, life.desk)
    reset(life.api)
    for number, name in ((61, "robin"), (62, "bounce+1"), (63, "complaint+1")):
        mail = f"{name}@other.example"
        assert enrol(mine, number, email=mail, invite_immediately=True).status_code == 201
    deliver(life)
    save(mine, other, "theirs")
    sent = mine.api.post(
        f"{mine.path}-files",
        content=csv_of([row(64), row(65)]),
        headers={"Content-Type": "text/csv"},
    )
    assert sent.status_code == 202
    assert run_next(life.db, life.clock, RunOptions(Uniqueness.SERVICE))
    assert enrol(life, 66).status_code == 201
    # What a reset of the first account and the calls themselves write.
    own = {
        "accounts",
        "member_history",
        "api_clients",
        "access_tokens",
        "request_allowances",
        "retention_positions",
    }
    before = rows_of(life.db, other.account_id, own)
    assert len(before["suppressions"]) == 2
    assert reset(life.api)["members"] == 1
    assert rows_of(life.db, other.account_id, own) == before


def test_merged_members_are_erased_together(life: Life) -> None:
    for number in (31, 32):
        assert enrol(life, number, first_name="Same").status_code == 201
    with life.db.write() as tx:
        merge(
            tx,
            *lock_pair(tx, EVERY, "AB 000031", "AB 000032"),
            Requester("someone", "r", life.clock()),
        )
    reset(life.api)
    for number in (31, 32):
        assert enrol(life, number, first_name="Same").status_code == 201


def test_the_demo_gets_its_mapping_back(db: Database, api: Api, clock: SetClock) -> None:
    demo = make_customer(db, name=ACCOUNT, scopes=RESETS)
    with db.write() as tx:
        save_mapping(
            tx,
            MappingName(demo.account_id, "default"),
            {"sheet": "X"},
            Requester("x", "r", clock()),
            default=None,
        )
    reset(api.as_(demo.token))
    [mapping] = db.ask(lambda tx: list_mappings(tx, demo.account_id))
    assert (mapping.name, mapping.mapping, mapping.is_default) == ("default", SAMPLE_MAPPING, True)


def test_a_legal_hold_keeps_everything(life: Life) -> None:
    requester = Requester("someone", "r", life.clock())
    [person] = life.db.ask(lambda tx: find_persons(tx, EVERY, KEY))
    with life.db.write() as tx:
        place_hold(tx, person, "Case 1", requester)
    refused = reset(life.api, 409).json()
    assert (refused["type"].partition("#")[2], refused["errors"][0]["code"]) == (
        "wrong_state",
        "legal_hold",
    )
    assert len(life.api.get("/v2/eligibility-files").json()["data"]) == 6
    with life.db.write() as tx:
        release_hold(tx, person, requester)
    reset(life.api)


def test_a_reset_that_takes_too_long_goes_on_with_the_next_call(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "RESET_SECONDS", -1.0)
    monkeypatch.setattr("frontdesk.sandbox.store.ERASED_TOGETHER", 1)
    monkeypatch.setattr("frontdesk.sandbox.store.WINDOW", 2)
    answers = []
    while (answer := life.api.post("/sandbox/reset")).status_code == 503:
        answers.append(answer)
    assert {answer.headers["Retry-After"] for answer in answers} == {"1"}
    assert len(answers) > 4
    assert life.mentions() == set()


def test_a_file_that_is_being_loaded_stops(life: Life) -> None:
    def once(step: FileStep, done: int, _total: int | None) -> None:
        if step is FileStep.APPLY and done == 4 and not seen:
            seen.append(reset(life.api)["members"])

    seen: list[int] = []
    rows = csv_of(row(number) for number in range(40, 60))
    sent = life.api.post(f"{life.path}-files", content=rows, headers={"Content-Type": "text/csv"})
    options = RunOptions(Uniqueness.SERVICE, on_progress=once, chunk_rows=2)
    assert run_next(life.db, life.clock, options)
    assert seen[0] >= 4
    assert life.api.get(f"{life.path}-files/{sent.json()['data']['id']}").status_code == 404
    assert reset(life.api) == {"type": "sandbox_resets", "files": 0, "members": 0}


def test_the_answer_is_as_the_page_says(api: Api, customer: Customer) -> None:
    page = (Path(__file__).parents[2] / "docs/sandbox.md").read_text()
    [(method, path, body)] = re.findall(
        r"```http\n(\w+) (\S+)\n```\n\n```http\nHTTP[^{]*(.*?)```", page, re.DOTALL
    )
    for number in range(3):
        members = f"/v2/plans/{customer.plan_ids[number % 2]}/eligibility"
        assert api.post(members, member_body(number)).status_code == 201
    answer = api.request(method, path)
    assert answer.json() == json.loads(body)
    assert answer.headers["Cache-Control"] == "no-store"


def test_only_a_client_that_was_given_the_right_by_name_resets_an_account(
    api: Api, db: Database
) -> None:
    """An installation is a sandbox by default, so its operator may not know that it is one."""
    assert api.as_(None).post("/sandbox/reset").status_code == 401
    usual = make_customer(db, name="Usual")
    members = f"/v2/plans/{usual.plan_ids[0]}/eligibility"
    assert api.as_(usual.token).post(members, member_body(1)).status_code == 201
    refused = api.as_(usual.token).post("/sandbox/reset")
    assert (refused.status_code, "sandbox:reset" in refused.json()["detail"]) == (403, True)
    assert (
        api.as_(usual.token).post(members, member_body(1)).headers["Eligibility-Outcome"]
        == "unchanged"
    )
    assert api.get("/sandbox/reset").headers["Allow"] == "POST"


def test_keys_are_new_after_a_reset_of_an_account_without_members(
    api: Api, customer: Customer, db: Database
) -> None:
    plan = f"/v2/plans/{customer.plan_ids[0]}"
    keyed = {"Idempotency-Key": "one"}
    other = make_customer(db, name="Other", scopes=RESETS)
    theirs = api.as_(other.token), f"/v2/plans/{other.plan_ids[0]}"
    for caller, path in ((api, plan), theirs):
        assert caller.patch(path, {"name": "First"}, headers=keyed).status_code == 200
    assert reset(api)["members"] == 0
    answer = api.patch(plan, {"name": "Second"}, headers=keyed)
    assert (answer.status_code, "Idempotency-Replayed" in answer.headers) == (200, False)
    answer = theirs[0].patch(theirs[1], {"name": "First"}, headers=keyed)
    assert answer.headers["Idempotency-Replayed"] == "true"


def test_events_and_endpoints_stay_and_a_cursor_goes_on_after_a_reset(
    api: Api, customer: Customer
) -> None:
    members = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    assert api.get("/v2/events").json()["data"] == []  # begins the feed
    made = api.post("/v2/webhook-endpoints", {"url": "https://hooks.example.com/frontdesk"})
    assert made.status_code == 201, made.text
    assert api.post(members, member_body(1)).status_code == 201
    before = api.get("/v2/events").json()["data"]
    reset(api)
    assert api.post(members, member_body(1)).status_code == 201
    after = api.get("/v2/events").json()["data"]
    assert (after[: len(before)], [event["type"] for event in before]) == (
        before,
        ["member.created"],
    )
    newer = api.get("/v2/events", params={"page[after]": before[-1]["id"]}).json()["data"]
    assert newer == after[1:]
    assert newer[-1]["type"] == "member.created"
    [endpoint] = api.get("/v2/webhook-endpoints").json()["data"]
    assert endpoint == {
        name: value for name, value in made.json()["data"].items() if name != "secret"
    }
