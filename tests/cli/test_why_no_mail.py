"""`member show` says in one sentence why no mail came; `invitations list --member` finds a member's
invitation.
"""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from frontdesk.clock import system_clock
from frontdesk.config import read_config
from frontdesk.db import Database
from frontdesk.eligibility.tables import members
from frontdesk.invitations import find_of_members, set_deliverability, suppress
from frontdesk.invitations.delivery_hold import hold
from frontdesk.invitations.model import (
    DeliveryReport,
    HoldReason,
    InvitationState,
    InvitationStep,
    ReportEvent,
    StateChange,
    SuppressionReason,
)
from frontdesk.invitations.protocol import apply_changes
from frontdesk.invitations.reports import receive_report
from frontdesk.invitations.tables import delivery_windows, invitations
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.plans.tables import plans
from frontdesk.worker.delivery import DeliveryWorker
from tests.cli.conftest import CommandLine
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer, member_body
from tests.files.loading import Desk, csv_of, row
from tests.invitations.mails import mailed

WHO = "AB 000001"


def post(api: Api, **fields: Any) -> Any:
    answer = api.post("/v2/plans/1/eligibility", member_body(1, **fields))
    assert answer.status_code == 201
    return answer.json()


def why(cli: CommandLine, who: str = WHO, **settings: str) -> tuple[str, str]:
    """The reason for programs, and the sentence; people read the same."""
    mail = cli.json("member", "show", who, **settings)["mail"]
    assert mail["why"][:25] in cli.text("member", "show", who, **settings)
    return mail["reason"], mail["why"]


def change(db: Database, **values: Any) -> None:
    with db.write() as tx:
        tx.execute(update(invitations).values(values))


def test_a_member_is_found_by_each_of_its_names(
    api: Api, cli: CommandLine, customer: Customer
) -> None:
    member = post(api, invite_immediately=True)
    for who in (WHO, member["member_id"], "ROBIN.1@EXAMPLE.COM", str(member["id"])):
        assert cli.json("member", "show", who)["id"] == member["id"]
        [found] = cli.json("invitations", "list", "--member", who)
        assert found["member_id"] == member["id"]
        assert cli.json("invitations", "list", "--member", who, "--state", "sent") == []
    assert {each["action"] for each in cli.audit_trail()} >= {"member.read"}
    for words in (
        "member show 99",
        "member show 0001",
        "member show 9999999999999999999",
        "invitations list --member nobody",
    ):
        assert "There is no such eligible member" in cli.refused(*words.split())


def test_a_member_without_an_invitation(
    api: Api, cli: CommandLine, db: Database, customer: Customer
) -> None:
    post(api)
    reason, said = why(cli)
    assert (reason, "invite_immediately was not true" in said) == ("not_requested", True)
    with db.write() as tx:
        set_deliverability(tx, 1, enabled=False)
    assert why(cli)[0] == "disabled"
    with db.write() as tx:
        set_deliverability(tx, 1, enabled=True)
    reason, said = why(cli)
    assert (reason, "batches were not on when the member came" in said) == ("not_new", True)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"email": None}, "no_email"), ({"expiry_date": "2026-01-01"}, "expired"), ({}, "suppressed")],
)
def test_why_a_new_member_was_not_invited_is_told_by_what_it_came_with(
    api: Api,
    cli: CommandLine,
    db: Database,
    customer: Customer,
    fields: dict[str, Any],
    reason: str,
) -> None:
    if reason == "suppressed":
        with db.write() as tx:
            suppress(
                tx,
                "robin.1@example.com",
                SuppressionReason.COMPLAINT,
                now=NOW - timedelta(days=9),
                account_id=1,
            )
    post(api, **fields, invite_immediately=True)
    later = {"external_id": WHO, "email": "robin.1@example.com", "expiry_date": "2027-01-01"}
    assert api.post("/v2/plans/1/eligibility", later).status_code == 200
    assert why(cli)[0] == reason
    assert (cli.json("member", "show", WHO)["suppression"] is not None) == (reason == "suppressed")


def test_a_pending_invitation_says_what_it_waits_for(
    api: Api, cli: CommandLine, db: Database, customer: Customer
) -> None:
    with db.write() as tx:
        set_deliverability(tx, 1, enabled=True, hourly_limit=2)
    member = post(api)
    assert why(cli)[0] == "batch"
    with db.write() as tx:
        window = {
            "account_id": 1,
            "delivery": "batched",
            "version": 1,
            "measured_us": 10**9,
            "wall_at": datetime.now(UTC),
            "batch_left": 0,
        }
        tx.execute(delivery_windows.insert().values(window | {"sent": [[33, 2]]}))
    reason, said = why(cli)
    assert (reason, "(2 of 2 mails)" in said) == ("batch", True)
    with db.write() as tx:
        tx.execute(update(plans).values(accepting_patients=False))
    assert why(cli)[0] == "plan_inactive"
    with db.write() as tx:
        set_deliverability(tx, 1, enabled=False)
    assert why(cli)[0] == "disabled"
    soon = NOW + timedelta(days=3650)
    words = "4.7.1 <robin.1@example.com>: {try} later"
    change(
        db,
        due_at=soon,
        reason=InvitationStep.REFUSED_FOR_NOW,
        relay_code=451,
        relay_words=words,
        attempts=2,
    )
    reason, said = why(cli)
    assert (reason, f"The relay said: 451 {words}. The next" in said) == ("retry", True)
    [shown] = cli.json("member", "show", WHO)["invitations"]
    assert (shown["relay_words"], shown["enhanced_code"]) == (words, "4.7.1")
    listed = cli.json("invitations", "show", str(shown["id"]))
    assert (listed["enhanced_code"], "robin.1" in str(listed)) == ("4.7.1", False)
    no_relay = {
        "environment": "production",
        "base_url": "https://api.example.com",
        "link_secret": "a1b2c3d4" * 8,
    }
    assert why(cli, **no_relay)[0] == "no_relay"
    cli.json("account", "suspend", "1")
    assert why(cli)[0] == "suspended"
    with db.write() as tx:
        hold(tx, HoldReason.BY_OPERATOR)
    assert why(cli)[0] == "held"
    with db.write() as tx:
        suppress(tx, "robin.1@example.com", SuppressionReason.BY_HAND, now=NOW)
    assert why(cli)[0] == "suppressed"
    assert member["id"] == cli.json("member", "show", WHO)["id"]


def test_an_immediate_invitation_waits_for_a_worker_or_the_relay(
    api: Api, cli: CommandLine, db: Database, customer: Customer
) -> None:
    post(api, invite_immediately=True)
    reason, said = why(cli)
    assert (reason, "Does the relay answer (frontdesk check)" in said) == ("worker", True)
    change(db, reason=InvitationStep.NOT_OFFERED, relay_code=421, relay_words="closing")
    reason, said = why(cli)
    assert (reason, "before anything was sent. The relay said: 421 closing." in said) == (
        "worker",
        True,
    )


def test_an_invitation_that_a_merge_cancelled_says_so(
    api: Api, cli: CommandLine, customer: Customer
) -> None:
    post(api, last_name="Same", invite_immediately=True)
    assert api.post("/v2/plans/1/eligibility", member_body(2, last_name="Same")).status_code == 201
    cli.json("member", "merge", "AB 000002", WHO)
    assert why(cli)[0] == "not_requested"  # of the member that is left
    [shown] = cli.json("member", "show", WHO)["invitations"]
    steps = [each["why"] for each in shown["timeline"]]
    assert (shown["reason"], steps) == ("merged", ["The member was merged with another."])
    cli.json("member", "merge", "--undo", "AB 000002", WHO)
    reason, said = why(cli)
    assert (reason, "merged with another. To send it after all" in said) == ("merged", True)


def test_a_name_of_two_accounts_needs_the_account_and_an_unknown_one_is_refused(
    api: Api, cli: CommandLine, db: Database, customer: Customer
) -> None:
    member = post(api)
    stranger = make_customer(db)
    other = stranger.account_id
    for who in (WHO, member["member_id"], "robin.1@example.com", str(member["id"])):
        foreign = cli.refused("member", "show", who, "--account", str(other))
        assert foreign == cli.refused(
            "invitations", "list", "--member", who, "--account", str(other)
        )
        assert "There is no such eligible member" in foreign
    with db.write() as tx:  # as if FRONTDESK_UNIQUENESS were account
        row = dict(tx.execute(select(members)).mappings().one())
        changed = {
            "id": 99,
            "account_id": other,
            "plan_id": stranger.plan_ids[0],
            "uniqueness_scope": other,
        }
        tx.execute(members.insert().values(row | changed))
    assert "Say which with --account" in cli.refused("member", "show", "robin.1@example.com")


@pytest.mark.parametrize(
    "outcome",
    [
        (
            InvitationState.SENT,
            InvitationStep.ACCEPTED,
            "The relay said: 250 2.0.0 queued as 7F. Look its Message-ID up",
        ),
        (InvitationState.FAILED, InvitationStep.REFUSED, "invitations resend 1"),
        (InvitationState.CANCELLED, InvitationStep.SUPPRESSED, "frontdesk suppression remove"),
        (
            InvitationState.FAILED,
            InvitationStep.BY_REPORT,
            "Reported: bounced (5.1.1). To allow the suppressed",
        ),
        (InvitationState.CANCELLED, InvitationStep.EXPIRED, "The member's access has ended."),
        (InvitationState.AMBIGUOUS, InvitationStep.ANSWER_LOST, "invitations settle 1 --as sent"),
        (InvitationState.OFFERED, InvitationStep.RELAY_ASKED, "the content is about to be sent"),
    ],
)
def test_an_invitation_that_is_settled_or_ambiguous_says_what_to_do(
    api: Api,
    cli: CommandLine,
    db: Database,
    customer: Customer,
    outcome: tuple[InvitationState, InvitationStep, str],
) -> None:
    state, step, part = outcome
    mailed(api, db, customer, number=1)
    change(
        db, state=state, reason=step, relay_code=250, relay_words="2.0.0 queued as 7F", due_at=None
    )
    if step is InvitationStep.BY_REPORT:
        [shown] = cli.json("member", "show", WHO)["invitations"]
        report = DeliveryReport(shown["message_id"], ReportEvent.BOUNCED, "5.1.1")
        with db.write() as tx:
            receive_report(tx, report, now=NOW)
    assert part in why(cli)[1]


def test_the_words_of_the_relay_are_kept_and_erased_with_the_member(
    api: Api, cli: CommandLine, db: Database, customer: Customer
) -> None:
    post(api, email="refuse@example.com", invite_immediately=True)
    with closing(
        DeliveryWorker(
            read_config({"FRONTDESK_DATABASE_URL": db.url}), db, MailCatcher(db, system_clock)
        )
    ) as worker:
        worker.turn()
    [shown] = cli.json("member", "show", WHO)["invitations"]
    assert (shown["state"], shown["relay_code"], shown["enhanced_code"]) == ("failed", 550, "5.1.1")
    said = why(cli)[1]
    assert ("550 5.1.1 No such mailbox." in said, "invitations resend 1" in said) == (True, True)
    cli.json("member", "erase", WHO, "--yes")
    [erased] = cli.json("member", "show", str(shown["member_id"]))["invitations"]
    assert erased["relay_words"] is None
    said = why(cli, str(shown["member_id"]))[1]
    assert ("The member is erased" in said, "resend" in said) == (True, False)
    change(db, state=InvitationState.OFFERED)
    late = StateChange(
        InvitationState.OFFERED, InvitationState.SENT, InvitationStep.ACCEPTED, code=250, words="x"
    )
    with db.write() as tx:
        assert apply_changes(tx, [(late, find_of_members(tx, [shown["member_id"]])[0])], now=NOW)
    [erased] = cli.json("member", "show", str(shown["member_id"]))["invitations"]
    assert (erased["state"], erased["relay_words"]) == ("sent", None)


def test_the_files_that_touched_a_member_are_shown_with_their_outcome(
    cli: CommandLine, db: Database, customer: Customer, clock: SetClock
) -> None:
    refused = row(1, dob="never")
    Desk(db, customer, clock).load(csv_of([row(1)]))
    Desk(db, customer, clock).load(csv_of([refused]))
    first, second = cli.json("member", "show", "E00001")["files"]
    assert (first["place"], first["outcome"], first["state"]) == (2, "created", "done")
    assert (second["outcome"], second["faults"][0][0]) == ("refused", "dob")
    assert first["created_at"] in cli.text("member", "show", "E00001")
    cli.json("file", "undo", "1")
    assert [each["outcome"] for each in cli.json("member", "show", "E00001")["files"]] == [
        "created",
        "refused",
        "withdrawn",
    ]
