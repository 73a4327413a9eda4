"""What operators see of invitations and decide about them, the reports that come back by mail, and
the sandbox's mailbox.
"""

from datetime import timedelta
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frontdesk.cli.app import app
from frontdesk.clock import system_clock
from frontdesk.invitations.message import issue_tokens
from frontdesk.mail.model import AnswerLost, MailMessage
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.text import stored_time
from tests.cli.conftest import CommandLine
from tests.factories import make_customer
from tests.invitations.bounces import HEADERS, bounce
from tests.mail.memory import failing
from tests.worker.conftest import Post


@pytest.fixture
def desk(cli: CommandLine, post: Post) -> Post:
    """A customer whose members are invited and mailed at the time of the commands."""
    post.clock.now = system_clock()
    post.batches(hourly_limit=100, batch_size=60)
    return post


def deliver(desk: Post) -> int:
    desk.clock.now = system_clock()
    return desk.worker(connections=2).turn()


def run(desk: Post, statement: str) -> None:
    with desk.db.write() as tx:
        tx.exec_driver_sql(statement)


def test_the_timeline_has_every_step_and_its_reason(cli: CommandLine, desk: Post) -> None:
    desk.enrol(1)
    deliver(desk)
    item = cli.json("invitations", "show", "1")
    steps = [("pending", "claimed"), ("claimed", "offered"), ("offered", "sent")]
    assert [(step["from"], step["to"]) for step in item["timeline"]] == steps
    assert item["relay_code"] == 250
    said = cli.text("invitations", "show", "1")
    assert "The relay has taken the message." in said
    assert "robin" not in said
    assert "less than 24 hours ago" in cli.refused("invitations", "resend", "1")


def test_what_is_cancelled_or_held_back_is_not_sent(cli: CommandLine, desk: Post) -> None:
    desk.enrol(1)
    assert cli.json("invitations", "cancel", "1")["state"] == "cancelled"
    assert deliver(desk) == 0
    assert "only these can be cancelled: claimed, pending" in cli.refused(
        "invitations", "cancel", "1"
    )
    assert cli.json("invitations", "resend", "1")["state"] == "pending"
    assert cli.json("invitations", "hold") == {"held": True}
    assert deliver(desk) == 0
    assert cli.json("invitations", "release") == {"held": False, "kept_back": 0}
    assert deliver(desk) == 1
    actions = [entry["action"] for entry in cli.audit_trail()]
    assert {"invitation.cancelled", "invitation.resent"} <= set(actions)


def test_the_day_counts_per_address_over_all_invitations(cli: CommandLine, desk: Post) -> None:
    desk.enrol(2)
    cli.json("invitations", "cancel", "2")
    deliver(desk)
    # Another member has the address now, in capitals.
    run(
        desk,
        "UPDATE members SET email = (SELECT upper(address) FROM invitations WHERE id = 1) WHERE id = 2",
    )
    assert "less than 24 hours ago" in cli.refused("invitations", "resend", "2")
    yesterday = stored_time(system_clock() - timedelta(hours=25))
    run(desk, f"UPDATE invitations SET offered_at = '{yesterday}' WHERE id = 1")  # noqa: S608
    cli.json("invitations", "resend", "1")
    assert "in line already" in cli.refused("invitations", "resend", "2")
    deliver(desk)
    assert len(desk.mailer.messages) == 2


def test_an_ambiguous_one_is_shown_and_settled(cli: CommandLine, desk: Post) -> None:
    desk.enrol(1)
    desk.mailer.fault = failing("finish", AnswerLost())
    deliver(desk)
    [listed] = cli.json("invitations", "list", "--state", "ambiguous")
    assert listed["id"] == 1
    settle = ("invitations", "settle", "1", "--as")
    assert cli.json(*settle, "sent")["state"] == "sent"
    assert "only these can be settled: ambiguous" in cli.refused(*settle, "failed")
    run(desk, "UPDATE invitations SET state = 'pending'")
    cli.json("invitations", "hold")
    assert cli.json("invitations", "release", "--keep-back") == {"held": False, "kept_back": 1}
    assert deliver(desk) == 0
    assert len(cli.json("invitations", "list", "--state", "ambiguous")) == 1


def test_the_forecast_has_backlog_window_and_end(cli: CommandLine, desk: Post) -> None:
    desk.enrol(130, immediate=False)
    forecast = ("invitations", "forecast", "--account", str(desk.customer.account_id))
    before = cli.json(*forecast)
    assert (before["backlog"], before["sent_this_hour"], before["hourly_limit"]) == (130, 0, 100)
    deliver(desk)
    after = cli.json(*forecast)
    assert after["backlog"] + after["sent_this_hour"] == 130
    assert after["sent_this_hour"] > 0
    assert after["last_at"] is not None


def test_invitations_are_listed_with_masked_addresses(cli: CommandLine, desk: Post) -> None:
    desk.enrol(1)
    [listed] = cli.json("invitations", "list", "--state", "pending", "--limit", "1")
    assert listed["address_masked"] == "r***@e***.com"
    assert [listed[name] for name in ("state", "delivery", "kind")] == [
        "pending",
        "immediate",
        "enrolment",
    ]
    assert (listed["account_id"], listed["plan_id"]) == (
        desk.customer.account_id,
        desk.customer.plan_ids[0],
    )
    for said in (cli.text("invitations", "list"), str(listed)):
        assert "robin" not in said
        assert "example.com" not in said
    other = (
        "invitations",
        "list",
        "--account",
        str(make_customer(desk.db, name="Other").account_id),
    )
    assert cli.json(*other) == []
    assert "no such invitation" in cli.text(*other)
    assert "frontdesk account list" in cli.refused(*other[:-1], "77")
    assert "pending" in cli.refused("invitations", "list", "--state", "lost", status=2)
    for word in ("show", "cancel", "resend"):
        assert "There is no such invitation." in cli.refused("invitations", word, "77")


def test_a_mailbox_of_reports_is_read_once_and_again_without_effect(
    cli: CommandLine, desk: Post, tmp_path: Path
) -> None:
    desk.enrol(1)
    run(desk, "UPDATE invitations SET state = 'sent', message_id = 'abc123@mail.example.com'")
    with desk.db.write() as tx:
        issue_tokens(tx, {1: "abc123@mail.example.com"}, link_secret="s" * 32, now=system_clock())
    mbox = tmp_path / "mbox"
    mbox.touch()
    assert cli.json("bounces", "read", str(mbox))["messages"] == 0
    strange = bounce(original=HEADERS.replace("abc123", "other"))
    raws = (bounce(), strange, b"Subject: hello\n\nHello\n")
    mbox.write_bytes(
        b"\n".join(b"From MAILER-DAEMON Fri Nov 20 12:00:00 2026\n" + raw for raw in raws)
    )
    counts = {
        "messages": 3,
        "applied": 1,
        "known": 0,
        "unknown": 1,
        "no_news": 0,
        "not_a_report": 1,
    }
    assert cli.json("bounces", "read", str(mbox)) == counts
    [suppressed] = cli.json("suppression", "list", "--full")
    assert (suppressed["address"], suppressed["reason"]) == ("robin.1@example.com", "hard_bounce")
    assert cli.json("bounces", "read", str(mbox)) == counts | {"applied": 0, "known": 1}
    assert "3 messages: 0 reports applied, 1 known already" in cli.text(
        "bounces", "read", str(mbox)
    )
    assert cli.audit_trail()[-1]["action"] == "bounces.read"
    assert cli.json("invitations", "list")[0]["state"] == "failed"
    env = {"FRONTDESK_DATABASE_URL": cli.database_url}  # one message through a pipe
    piped = CliRunner().invoke(app, ["bounces", "read", "-", "--json"], input=bounce(), env=env)
    assert '"known": 1' in piped.stdout
    for wrong in (tmp_path / "none", tmp_path):
        assert "can't be read" in cli.refused("bounces", "read", str(wrong))


def catch(cli: CommandLine, html: str | None = "<p>Hello in HTML\n") -> None:
    mail = EmailMessage()
    mail["To"] = "robin@example.com"
    mail["Subject"] = "You are invited"
    mail.set_content("Hello [bold]in text[/bold]\n")
    if html is not None:
        mail.add_alternative(html, subtype="html")
    db = cli.open()
    conversation = MailCatcher(db, system_clock).open()
    ids = ("mail@example.com", "robin@example.com", "a@mail.example.com")
    conversation.offer(MailMessage(*ids, mail.as_bytes(policy=SMTP)))
    conversation.finish()
    db.close()


def test_caught_mails_are_listed_shown_and_cleared(cli: CommandLine) -> None:
    assert "Nothing has been caught yet" in cli.text("mailbox", "list")
    catch(cli)
    [item] = cli.json("mailbox", "list")
    assert (item["id"], item["recipient"], item["subject"]) == (
        1,
        "robin@example.com",
        "You are invited",
    )
    assert (item["outcome"], item["message_id"]) == ("caught", "a@mail.example.com")
    assert "You are invited" in cli.text("mailbox", "list")
    item = cli.json("mailbox", "show", "1")
    assert item["headers"]["To"] == "robin@example.com"
    assert (item["text"].strip(), item["html"].strip()) == (
        "Hello [bold]in text[/bold]",
        "<p>Hello in HTML",
    )
    assert "Hello [bold]in text[/bold]" in cli.text("mailbox", "show", "1")
    assert cli.json("mailbox", "clear") == {"deleted": 1}
    assert cli.json("mailbox", "list") == []
    assert "0 messages were deleted" in cli.text("mailbox", "clear")
    assert "Only a sandbox catches mail" in cli.refused("mailbox", "list", environment="production")


def test_a_mail_is_written_to_a_file_as_its_reader_would_see_it(
    cli: CommandLine, tmp_path: Path
) -> None:
    catch(cli)
    path = tmp_path / "mail.html"
    result = cli.json("mailbox", "open", "1", "--output", str(path))
    assert result == {"id": 1, "path": str(path), "opened": False}
    assert path.read_text().strip() == "<p>Hello in HTML"
    catch(cli, html=None)
    assert str(path) in cli.text("mailbox", "open", "2", "--output", str(path))
    assert path.read_text().strip() == "Hello [bold]in text[/bold]"
    nowhere = str(tmp_path / "none" / "mail.html")
    assert "can't be written" in cli.refused("mailbox", "open", "1", "--output", nowhere)
    for command in ("show", "open"):
        assert "There is no such message" in cli.refused("mailbox", command, "7")
