"""Thousands of random records against a plain model, on SQLite and PostgreSQL: the same answers
step by step.
"""

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.config import read_config
from frontdesk.db import Database, open_database
from frontdesk.eligibility import parse_member, probes
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.errors import Invalid
from tests.conftest import SetClock, emptied
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import SEED, times

STEPS = times(5_000, long=300_000)
TOGETHER = 12  # records that are handed in at once, and so share a transaction


@dataclass
class Model:
    """What the contract says, in the plainest way: records in a list, looked through from end to
    end.
    """

    records: list[dict[str, Any]] = field(default_factory=list)

    def post(
        self, account_id: int, plan_id: int, body: dict[str, Any]
    ) -> tuple[str, set[tuple[str, str]]]:
        """The outcome and the changed fields, or `refused` and the faults."""
        record = parse_member(body, today="2026-11-20")
        given = record.given
        own = next((r for r in self.records if r["external_id"] == record.external_id), None)
        foreign = own is not None and own["account_id"] != account_id
        faults = {(fault.field, str(fault.code)) for fault in record.faults}
        if own is None or foreign:
            needed = (
                "member_id",
                "first_name",
                "last_name",
                "dob",
                "gender",
                "zipcode",
                "effective_date",
            )
            faults |= {(name, "required") for name in needed if name not in body}
            faults |= {("external_id", "not_unique")} if foreign else set()
            merged = given
        else:
            merged = own | given
        for name, key in (("member_id", "member_id"), ("email", "email_folded")):
            others = (r for r in self.records if foreign or r is not own)
            if merged.get(key) is not None and any(r.get(key) == merged[key] for r in others):
                faults.add((name, "not_unique"))
        if (merged.get("expiry_date") or "9999") < (merged.get("effective_date") or ""):
            faults.add(("expiry_date", "expiry_before_effective"))
        # A matched record that changes nothing is not checked again.
        is_new = (
            own is None or foreign or any(own.get(name) != value for name, value in given.items())
        )
        if faults and (is_new or record.faults):
            return "refused", faults
        if own is None:
            self.records.append(given | {"account_id": account_id, "plan_id": plan_id})
            return "created", set()
        before = {"metadata": {}} | own
        changed = {(name, "") for name, value in given.items() if before.get(name) != value}
        moved = own["plan_id"] != plan_id
        own |= given | {"plan_id": plan_id}
        changed.discard(("email_folded", ""))
        return ("moved" if moved else "updated" if changed else "unchanged"), changed


def random_body(chance: random.Random) -> dict[str, Any]:
    """A record over few keys, so that matches, moves and collisions are common; some fields absent,
    cleared or wrong.
    """
    number = chance.randint(1, 60)
    body = member_body(number, last_name=chance.choice(["Sample", "Other", "Third"]))
    if chance.random() < 0.2:
        body["member_id"] = f"M-{chance.randint(1, 60):06d}"
    if chance.random() < 0.2:
        body["email"] = chance.choice([None, f"ROBIN.{chance.randint(1, 60)}@example.com"])
    if chance.random() < 0.3:
        body["expiry_date"] = chance.choice([None, "2026-06-30", "2025-01-01"])
    if chance.random() < 0.1:
        body[chance.choice(["gender", "zipcode", "dob"])] = chance.choice([None, "nonsense", 5])
    if chance.random() < 0.5:
        for name in chance.sample(sorted(body.keys() - {"external_id"}), chance.randint(1, 8)):
            del body[name]
    return body


def test_both_databases_answer_every_step_as_the_model_does(
    sqlite_template: Path,
    postgres_url: str,
    tmp_path: Path,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probes, "TAKEN_PER_DAY", STEPS)  # the model sets no limit
    path = tmp_path / "model.db"
    path.write_bytes(sqlite_template.read_bytes())
    for url in (f"sqlite:///{path}", emptied(postgres_url)):
        db = open_database(url)
        asyncio.run(_walk(db, url, clock))
        db.close()


async def _walk(db: Database, url: str, clock: SetClock) -> None:
    customers = [make_customer(db, name="One"), make_customer(db, name="Two")]
    app = App(read_config({"FRONTDESK_DATABASE_URL": url}), db, clock)
    model = Model()
    chance = random.Random(11 + SEED)
    step = 0
    while step < STEPS // 2:
        together = [_submission(customers, chance) for _ in range(chance.randint(1, TOGETHER))]
        answers = await asyncio.gather(
            *(app.enrolments.submit(submission) for submission, _ in together),
            return_exceptions=True,
        )
        for (submission, body), answer in zip(together, answers, strict=True):
            expected = model.post(submission.account_id, submission.plan_id, body)
            assert _told(answer) == expected, f"step {step}: {body}"
            step += 1
    await app.close()


def _submission(
    customers: list[Customer], chance: random.Random
) -> tuple[Submission, dict[str, Any]]:
    customer = customers[chance.random() < 0.2]
    body = random_body(chance)
    record = parse_member(body, today="2026-11-20")
    place = (customer.account_id, chance.choice(customer.plan_ids))
    return Submission(*place, record, "client", "request"), body


def _told(answer: Any) -> tuple[str, set[tuple[str, str]]]:
    if isinstance(answer, Invalid):
        return "refused", {(fault.field, fault.code) for fault in answer.faults}
    assert isinstance(answer, Enrolled), answer
    if answer.outcome == "created":
        return "created", set()
    return answer.outcome.value, {(name, "") for name in answer.changes if name != "plan_id"}
