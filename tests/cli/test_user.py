"""Users of the console at the command line."""

import re

from frontdesk.audit import Requester
from frontdesk.clock import system_clock
from frontdesk.users import directory, links
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import NewUser, Role, Visitor
from frontdesk.users.sign_in import check_password
from tests.cli.conftest import CommandLine

EMAIL = "ana@example.org"
SAFE = {
    "environment": "production",
    "base_url": "https://api.example.com",
    "link_secret": "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e",
    "mail_from": "invitations@example.com",
}


def joined(cli: CommandLine, *words: str) -> int:
    """A user who has accepted the invitation that the command printed; the id."""
    link = cli.json("user", "invite", *words)["link"]
    secret = link.rpartition("/")[2]
    db = cli.open()
    visitor = Visitor("192.0.2.1", None, Requester("console", "request", system_clock()))
    begun = links.accept_invitation(
        db, visitor, secret=secret, name="Ana Ruiz", password="correct-battery-staple"
    )
    db.close()
    return begun.attempt.user.id


def test_the_first_operator_is_invited_by_a_link_that_is_printed_once(cli: CommandLine) -> None:
    assert "frontdesk user invite" in cli.text("user", "list")
    said = cli.text("user", "invite", "Ana@Example.org", "--role", "operator")
    assert re.search(r"http://127\.0\.0\.1:8000/console/invitation/[A-Za-z0-9_-]{43}\b", said)
    assert "can't be shown again" in said
    id_ = joined(cli, EMAIL, "--role", "operator")
    [shown] = cli.json("user", "list")
    assert shown == {
        "id": id_,
        "account_id": None,
        "email": EMAIL,
        "name": "Ana Ruiz",
        "roles": ["operator"],
        "state": "active",
        "last_signed_in_at": None,
    }
    more = cli.json("user", "show", str(id_))
    assert (more["has_second_factor"], more["recovery_codes_left"]) == (False, 0)
    assert list(more["roles_since"]) == ["operator"]
    assert more["invited_by"].startswith("cli:")


def test_roles_ask_for_their_account(cli: CommandLine, account: str) -> None:
    assert "at least one --role" in cli.refused("user", "invite", EMAIL, status=2)
    one = cli.refused("user", "invite", EMAIL, "--role", "editor", status=2)
    assert "--account" in one
    unknown = cli.refused("user", "invite", EMAIL, "--role", "editor", "--account", "77")
    assert "There is no such account." in unknown
    mixed = ("--role", "editor", "--role", "operator", "--account", account)
    assert "must be viewer, editor" in cli.refused("user", "invite", EMAIL, *mixed)
    named = ("--role", "operator", "--account", account)
    assert "support only" in cli.refused("user", "invite", EMAIL, *named)
    id_ = joined(cli, EMAIL, "--role", "editor", "--account", account)
    assert [user["id"] for user in cli.json("user", "list", "--account", account)] == [id_]
    support = ("--role", "support", "--account", account)
    id_ = joined(cli, "sam@example.org", *support)
    assert cli.json("user", "show", str(id_))["named_accounts"] == [int(account)]
    assert cli.json("user", "roles", str(id_), "--role", "support").get("named_accounts") is None


def test_a_user_is_given_other_roles_reset_and_ended(cli: CommandLine, account: str) -> None:
    id_ = str(joined(cli, EMAIL, "--role", "editor", "--account", account))
    both = ("--role", "editor", "--role", "approver")
    assert cli.json("user", "roles", id_, *both)["roles"] == ["approver", "editor"]
    assert "one role or more" in cli.refused("user", "roles", id_)
    assert "/console/reset/" in cli.json("user", "reset", id_)["link"]
    assert cli.json("user", "reset", id_, "--second-factor")["id"] == int(id_)
    assert "no session" in cli.text("user", "sessions", id_)
    assert cli.json("user", "sessions", id_, "--end") == {"id": int(id_), "ended": 0}
    client = cli.json("client", "create", "--account", account, "--name", "Nightly upload")
    db = cli.open()
    with db.write() as tx:
        directory.note_secret_seen(tx, int(id_), client["client_id"], now=system_clock())
    db.close()
    ended = cli.json("user", "end", id_)
    assert (ended["state"], ended["client_ids"]) == ("ended", [client["client_id"]])
    assert cli.json("user", "list") == []
    assert [user["id"] for user in cli.json("user", "list", "--with-ended")] == [int(id_)]
    refused = cli.refused("user", "end", id_)
    assert "frontdesk user list" in refused
    actions = [entry["action"] for entry in cli.audit_trail() if entry["action"][:5] == "user."]
    assert actions == [
        "user.invited",
        "user.joined",
        "user.roles_changed",
        "user.reset_link_made",
        "user.factor_removed",
        "user.sessions_ended",
        "user.ended",
    ]
    assert EMAIL not in str(cli.audit_trail())


def test_a_suspended_account_ends_the_sessions_of_its_users(cli: CommandLine, account: str) -> None:
    db = cli.open()
    new = NewUser(EMAIL, int(account), frozenset({Role.VIEWER}))
    user, password = create_demo_user(db, new, name="Demo", now=system_clock())
    visitor = Visitor("192.0.2.1", None, Requester("console", "request", system_clock()))
    assert check_password(db, visitor, email=EMAIL, password=password)
    db.close()
    assert len(cli.json("user", "sessions", str(user.id))) == 1
    cli.json("account", "suspend", account)
    cli.json("account", "resume", account)
    assert cli.json("user", "sessions", str(user.id)) == []


def test_production_does_not_serve_while_a_demo_user_exists(cli: CommandLine, account: str) -> None:
    db = cli.open()
    new = NewUser(EMAIL, int(account), frozenset({Role.VIEWER}))
    user, _ = create_demo_user(db, new, name="Demo", now=system_clock())
    db.close()

    def problems(**settings: str) -> list[str]:
        result = cli.run("check", "--json", **settings)
        return re.findall('demo users, who sign in[^"]*', result.stdout)

    assert problems() == []
    [problem] = problems(**SAFE)
    assert problem == f"demo users, who sign in without a second factor: {user.id}."
    cli.json("user", "end", str(user.id))
    assert problems(**SAFE) == []
