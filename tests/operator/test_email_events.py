"""What relays tell by calling back."""

import json
from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.invitations.model import InvitationState
from tests.conftest import Api
from tests.factories import Customer, make_operator
from tests.invitations.mails import mailed, state_of, suppressed

PATH = "/operator/v1/email-events"


@pytest.fixture
def operator(api: Api, db: Database) -> Api:
    return api.as_(make_operator(db).token)


def event(message_id: object, kind: object, **more: Any) -> dict[str, Any]:
    return {"message_id": message_id, "event": kind} | more


def results(operator: Api, *events: object) -> list[dict[str, Any]]:
    answer = operator.post(PATH, {"events": list(events)})
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_each_event_has_its_own_result(
    api: Api, operator: Api, db: Database, customer: Customer
) -> None:
    one, two, three = (
        mailed(api, db, customer, number=n, state=InvitationState.AMBIGUOUS, losses=1)
        for n in (1, 2, 3)
    )
    sent = [
        (event(one.message_id, "delivered"), "applied"),
        (event(f"<{two.message_id}>", "bounced", status="5.1.1"), "applied"),
        (event("nobody@mail.example.com", "bounced"), "unknown"),
        (event(three.message_id, "exploded"), "invalid"),
        (event(three.message_id, "complained", relay="x", timestamp=1), "applied"),
        (event(one.message_id, "delivered"), "known"),
        (event(three.message_id, "delayed"), "no_news"),
    ]
    answers = results(operator, *(each for each, _ in sent))
    assert [answer["result"] for answer in answers] == [result for _, result in sent]
    again = [answer["result"] for answer in results(operator, *(each for each, _ in sent))]
    assert again == ["known" if result == "applied" else result for _, result in sent]
    message = "must be one of bounced, complained, delayed, delivered"
    assert answers[3]["errors"] == [{"field": "event", "code": "not_allowed", "message": message}]
    assert [state_of(db, mail) for mail in (one, two, three)] == ["sent", "failed", "sent"]
    assert suppressed(db) == {two.address: "hard_bounce", three.address: "complaint"}


def test_the_relays_judgement_counts_most(
    api: Api, operator: Api, db: Database, customer: Customer
) -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, True), ({"permanent": False}, False), ({"status": None, "permanent": None}, True),
        ({"status": "5.2.2", "permanent": True}, True), ({"status": "5.1.1", "permanent": False}, False),
    ]  # fmt: skip
    mails = [mailed(api, db, customer, number=n) for n in range(len(cases))]
    events = [
        event(mail.message_id, "bounced", **more)
        for mail, (more, _) in zip(mails, cases, strict=True)
    ]
    assert {result["result"] for result in results(operator, *events)} == {"applied"}
    hard = {mail.address for mail, (_, is_hard) in zip(mails, cases, strict=True) if is_hard}
    assert set(suppressed(db)) == hard


WRONG: list[tuple[Any, list[str]]] = [
    ({}, ["message_id", "event"]),
    ([], ["event"]),
    *((wrong, ["event"]) for wrong in ("x", None)),
    *(
        (event(id_, "bounced"), ["message_id"])
        for id_ in (1, "no id", "a@b" * 200, "<a@b> <c@d>", "a@b\u0000")
    ),
    (event("a@b", ["bounced"]), ["event"]),
    *((event("a@b", "bounced", status=wrong), ["status"]) for wrong in ("9.9.9", 5, "5.1.1\n")),
    *((event("a@b", "bounced", permanent=wrong), ["permanent"]) for wrong in ("yes", 1)),
    (event("", None, status="", permanent=0), ["message_id", "event", "status", "permanent"]),
]


def test_an_event_that_is_none_gets_all_its_faults_and_harms_no_other(
    api: Api, operator: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    *wrong, good = results(
        operator, *(sent for sent, _ in WRONG), event(mail.message_id, "complained")
    )
    assert {result["result"] for result in wrong} == {"invalid"}
    named = [[error["field"] for error in result["errors"]] for result in wrong]
    assert named == [fields for _, fields in WRONG]
    assert good == {"result": "applied"}
    assert suppressed(db) == {mail.address: "complaint"}


@pytest.mark.parametrize(
    "body", [{}, {"events": []}, {"events": {}}, {"events": "x"}, {"events": [{}] * 501}]
)
def test_a_body_without_a_list_of_events_is_refused(operator: Api, body: dict[str, Any]) -> None:
    answer = operator.post(PATH, body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "events")


def test_five_hundred_events_fit_in_one_request(operator: Api) -> None:
    events = [event(f"{n}@mail.example.com", "delivered") for n in range(500)]
    assert len(json.dumps({"events": events})) < 64 * 1024
    assert {result["result"] for result in results(operator, *events)} == {"unknown"}
