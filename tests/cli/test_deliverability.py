"""What an account's invitations look like, how many go out, and the addresses that get none."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frontdesk.cli.app import app
from frontdesk.invitations import suppress
from frontdesk.invitations.model import SuppressionReason
from tests.cli.conftest import CommandLine
from tests.factories import NOW

TEXT = "Welcome. {{ registration_link }} {{ unsubscribe_link }}\n"
HTML = "<p>Welcome to {{ plan_name }}. {{ registration_link }} {{ unsubscribe_link }}</p>\n"


def test_setting_changes_what_is_given_and_keeps_the_rest(cli: CommandLine, account: str) -> None:
    change, show = (("deliverability", word, "--account", account) for word in ("set", "show"))
    unset = dict.fromkeys(("sender_name", "sender_address", "registration_url"))
    numbers = {"batch_size": 100, "batch_interval_seconds": 60, "hourly_limit": 1000}
    assert cli.json(*show) == {"account_id": int(account), "enabled": False} | numbers | unset
    cli.json(*change, "--enabled", "--batch-size", "50")
    changed = cli.json(
        *(*change, "--hourly-limit", "500", "--batch-interval-seconds", "30"),
        *("--sender-name", "Example Health", "--sender-address", "care@example.com"),
        *("--registration-url", "https://join.example.com/start"),
    )
    assert (changed["enabled"], changed["batch_size"], changed["hourly_limit"]) == (True, 50, 500)
    assert changed["sender_address"] == "care@example.com"
    assert cli.json(*show) == changed
    assert "https://join.example.com/start" in cli.text(*show)
    cleared = cli.json(*change, "--sender-name", "", "--disabled")
    assert (cleared["enabled"], cleared["sender_name"]) == (False, None)
    [*_, entry] = cli.audit_trail()
    assert entry["action"] == "deliverability.changed"
    assert entry["detail"] == {"fields": ["enabled", "sender_name"]}


URL = "--registration-url must be an absolute https address without a user"
WRONG_URLS = [
    *(
        "javascript:alert(1)",
        "https://",
        "https://[::1",
        "join.example.com",
        "http://join.example.com",
    ),
    *(
        "https://a b.example.com",
        "https://robin@join.example.com",
        "https://robin:secret@a.example.com/x",
    ),
]
FAULTS = [
    (("--sender-name", "a\nb"), "--sender-name must not contain control characters."),
    (
        ("--sender-name", "=?utf-8?q?Care=0ABcc=3A=20others=40example.com?="),
        "--sender-name must not contain =?.",
    ),
    (
        ("--sender-address", "nobody", "--sender-name", "a\nb"),
        "--sender-name must not contain control",
    ),
    (
        ("--sender-address", "nobody", "--sender-name", "a\nb"),
        "--sender-address must be an e-mail address",
    ),
    *((("--registration-url", url), URL) for url in WRONG_URLS),
]


@pytest.mark.parametrize(("options", "sentence"), FAULTS)
def test_all_faults_are_reported(
    cli: CommandLine, account: str, options: tuple[str, ...], sentence: str
) -> None:
    said = cli.refused("deliverability", "set", "--account", account, *options)
    assert (sentence in said, "secret" in said) == (True, False)


@pytest.mark.parametrize("number", ["0", "-1", str(2**31), "many"])
def test_a_number_out_of_range_is_misuse(bare_cli: CommandLine, number: str) -> None:
    words = ("deliverability", "set", "--account", "1", "--batch-size", number)
    assert "--batch-size" in bare_cli.refused(*words, status=2)


def written(tmp_path: Path, name: str, content: str) -> str:
    path = tmp_path / name
    path.write_text(content)
    return str(path)


def test_own_templates_are_set_shown_and_reset(
    cli: CommandLine, account: str, tmp_path: Path
) -> None:
    change, show = (("template", word, "--account", account) for word in ("set", "show"))
    shown = cli.json(*show)
    assert (shown["own"], "{{ registration_link }}" in shown["html"]) == ([], True)
    assert "the product's" in cli.text(*show)
    text = written(tmp_path, "a.txt", TEXT)
    html = written(tmp_path, "a.html", HTML)
    cli.json(*change, "--text", text, "--html", html)
    made = cli.json(*change, "--subject", "Welcome to {{ plan_name }}")
    assert (made["text"], made["html"], made["own"]) == (TEXT, HTML, ["subject", "text", "html"])
    made = cli.json(*change, "--default", "--text", text)
    assert (made["own"], made["html"]) == (["text"], None)
    assert "text alone" in cli.text(*show)
    entries = [entry for entry in cli.audit_trail() if entry["action"] == "template.changed"]
    assert entries[0]["detail"] == {"fields": ["html", "text"]}


def test_all_faults_of_templates_are_reported_at_once(
    cli: CommandLine, account: str, tmp_path: Path
) -> None:
    change = ("template", "set", "--account", account, "--text")
    text = written(tmp_path, "a.txt", "Hello")
    html = written(tmp_path, "a.html", HTML + "{{ member }}")
    said = cli.refused(*change, text, "--html", html, "--subject", "{{ x")
    assert "--text must show {{ registration_link }}." in said
    assert "--html line 2 must have only text, conditions, the names plan_name, sender_name" in said
    assert "--subject must be a Jinja template; line 1 can't be read." in said
    assert cli.json("template", "show", "--account", account)["own"] == []
    latin = tmp_path / "latin.txt"
    latin.write_bytes("ü".encode("latin-1"))
    assert "not UTF-8" in cli.refused(*change, str(latin))
    assert "No such file" in cli.refused(*change, str(tmp_path / "none"))


def test_a_preview_is_the_mail_as_it_would_be_sent(
    cli: CommandLine, account: str, plan: str, tmp_path: Path
) -> None:
    cli.json("deliverability", "set", "--account", account, "--sender-name", "Example Health")
    preview = ("template", "preview", "--plan", plan, "--output")
    parts = {
        "html": "Gold &lt;2026&gt;",
        "txt": "You are invited to Gold <2026>",
        "eml": "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
    }
    for ending, part in parts.items():
        path = tmp_path / f"preview.{ending}"
        subject = "Example Health invites you to Gold <2026>"
        assert cli.json(*preview, str(path)) == {"path": str(path), "subject": subject}
        assert part in path.read_text()
    assert "Example Health invites you" in cli.text(*preview, str(tmp_path / "preview.eml"))
    assert ".html, .txt or .eml" in cli.refused(*preview, str(tmp_path / "preview.pdf"), status=2)
    assert "can't be written" in cli.refused(*preview, str(tmp_path / "none" / "preview.html"))
    cli.json("template", "set", "--account", account, "--text", written(tmp_path, "a.txt", TEXT))
    assert "no HTML part" in cli.refused(*preview, str(tmp_path / "preview.html"))
    assert "plan list" in cli.refused("template", "preview", "--plan", "99", "--output", "x.html")


def test_addresses_are_put_on_the_list_and_taken_off_once(cli: CommandLine) -> None:
    add = ("suppression", "add")
    remove = ("suppression", "remove")
    assert cli.json(*add, "Robin@Example.com") == {"changed": 1, "unchanged": 0}
    assert "Addresses added: 0; 1 needed no change" in cli.text(*add, "robin@example.com")
    [item] = cli.json("suppression", "list")
    assert (item["address_masked"], item["reason"]) == ("r***@e***.com", "by_hand")
    [item] = cli.json("suppression", "list", "--full")
    assert item["address"] == "robin@example.com"
    assert "Addresses removed: 1; 0" in cli.text(*remove, "ROBIN@example.com")
    assert "No address is suppressed" in cli.text("suppression", "list")
    added, removed = [(entry["action"], entry["detail"]) for entry in cli.audit_trail()]
    assert added == ("suppression.added", {"count": 1})
    assert removed == ("suppression.removed", {"count": 1, "reasons": {"by_hand": 1}})
    assert cli.json(*remove, "robin@example.com") == {"changed": 0, "unchanged": 1, "refused": {}}
    said = cli.refused(*add, "robin-at-example")
    assert "ADDRESS must be an e-mail address." in said
    assert "robin" not in said


def test_who_unsubscribed_stays_on_the_list_and_a_bounce_is_lifted(
    cli: CommandLine, account: str
) -> None:
    remove = ("suppression", "remove")
    bounced = ("bounced@example.com", SuppressionReason.HARD_BOUNCE)
    gone = ("gone@example.com", SuppressionReason.UNSUBSCRIBE)
    with closing(cli.open()) as db, db.write() as tx:
        for address, reason in (bounced, gone):
            suppress(tx, address, reason, now=NOW, account_id=int(account))
    assert "Nobody can lift that: not the account, not an operator." in cli.refused(
        *remove, gone[0]
    )
    env = {"FRONTDESK_DATABASE_URL": cli.database_url}
    result = CliRunner().invoke(
        app, [*remove, "-", "--json"], input=f"{bounced[0]}\n{gone[0]}\nno@example.com\n", env=env
    )
    counts = {"changed": 1, "unchanged": 1, "refused": {"unsubscribed": 1}}
    assert json.loads(result.stdout) == counts
    [left] = cli.json("suppression", "list")
    assert (left["reason"], left["account_id"]) == ("unsubscribe", int(account))


def test_addresses_come_from_a_pipe_too_and_a_wrong_line_is_named(cli: CommandLine) -> None:
    runner = CliRunner()
    env = {"FRONTDESK_DATABASE_URL": cli.database_url}
    lines = "robin@example.com\n\n  sam@example.com  \nROBIN@example.com\n"
    result = runner.invoke(
        app, ["suppression", "add", "-"], input=lines, env=env, catch_exceptions=False
    )
    assert "Addresses added: 2; 1 needed no change" in result.stdout
    result = runner.invoke(app, ["suppression", "add", "-"], input=lines + "nobody\n", env=env)
    assert (result.exit_code, "in line 5" in result.stderr) == (1, True)
    assert "nobody" not in result.stderr
    assert len(cli.json("suppression", "list")) == 2
    assert len(cli.json("suppression", "list", "--limit", "1")) == 1
