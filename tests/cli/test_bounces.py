from pathlib import Path

from typer.testing import CliRunner

from frontdesk.cli.app import app
from frontdesk.config import Uniqueness
from frontdesk.eligibility import enrol, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.invitations.message import issue_tokens
from tests.cli.conftest import CommandLine
from tests.factories import NOW, make_customer, member_body
from tests.invitations.test_bounces import HEADERS, bounce

FROM = b"From MAILER-DAEMON Fri Nov 20 12:00:00 2026\n"


def invited(cli: CommandLine) -> str:
    """The address of a member whose invitation, `<abc123@mail.example.com>`, was sent."""
    db = cli.open()
    customer = make_customer(db)
    record = parse_member(member_body(invite_immediately=True), today="2026-11-20", strict=False)
    with db.write() as tx:
        submission = Submission(customer.account_id, customer.plan_ids[0], record, "client", "request")
        enrol(tx, [submission], now=NOW, uniqueness=Uniqueness.SERVICE)
        tx.exec_driver_sql("UPDATE invitations SET state = 'sent', message_id = 'abc123@mail.example.com'")
        issue_tokens(tx, {1: "abc123@mail.example.com"}, link_secret="s" * 32, now=NOW)
    db.close()
    return "robin.1@example.com"


def test_a_mailbox_is_read_once_and_again_without_effect(cli: CommandLine, tmp_path: Path) -> None:
    address = invited(cli)
    mbox = tmp_path / "mbox"
    strange = bounce(original=HEADERS.replace("abc123", "other"))
    mbox.write_bytes(b"\n".join(FROM + raw for raw in (bounce(), strange, b"Subject: hello\n\nHello\n")))
    counts = {"messages": 3, "applied": 1, "known": 0, "unknown": 1, "no_news": 0, "not_a_report": 1}
    assert cli.json("bounces", "read", str(mbox)) == counts
    assert cli.json("suppression", "list", "--full")[0]["address"] == address
    assert cli.json("suppression", "list")[0]["reason"] == "hard_bounce"
    assert cli.json("bounces", "read", str(mbox)) == counts | {"applied": 0, "known": 1}
    assert "3 messages: 0 reports applied, 1 known already" in cli.text("bounces", "read", str(mbox))
    assert [entry["action"] for entry in cli.audit_trail()][-1] == "bounces.read"
    assert cli.json("invitations", "list")[0]["state"] == "failed"


def test_one_message_comes_through_a_pipe(cli: CommandLine) -> None:
    invited(cli)
    env = {"FRONTDESK_DATABASE_URL": cli.database_url}
    arguments = ["bounces", "read", "-", "--json"]
    result = CliRunner().invoke(app, arguments, input=bounce(), env=env, catch_exceptions=False)
    assert '"applied": 1' in result.stdout


def test_a_mailbox_that_is_missing_is_reported(cli: CommandLine, tmp_path: Path) -> None:
    assert "can't be read" in cli.refused("bounces", "read", str(tmp_path / "none"))
    assert "can't be read" in cli.refused("bounces", "read", str(tmp_path))


def test_an_empty_mailbox_is_fine(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert cli.json("bounces", "read", str(tmp_path / "empty"))["messages"] == 0
