from pathlib import Path

from tests.cli.conftest import CommandLine

TEXT = "Welcome. {{ registration_link }} {{ unsubscribe_link }}\n"
HTML = "<p>Welcome to {{ plan_name }}. {{ registration_link }} {{ unsubscribe_link }}</p>\n"


def written(tmp_path: Path, name: str, content: str) -> str:
    path = tmp_path / name
    path.write_text(content)
    return str(path)


def test_without_templates_of_its_own_an_account_uses_the_products(cli: CommandLine, account: str) -> None:
    shown = cli.json("template", "show", "--account", account)
    assert shown["own"] == []
    assert "{{ plan_name }}" in shown["subject"]
    assert "{{ registration_link }}" in shown["html"]
    assert "the product's" in cli.text("template", "show", "--account", account)


def test_own_templates_are_set_shown_and_reset(cli: CommandLine, account: str, tmp_path: Path) -> None:
    text, html = written(tmp_path, "a.txt", TEXT), written(tmp_path, "a.html", HTML)
    made = cli.json("template", "set", "--account", account, "--text", text, "--html", html)
    assert (made["text"], made["html"], made["own"]) == (TEXT, HTML, ["text", "html"])
    made = cli.json("template", "set", "--account", account, "--subject", "Welcome to {{ plan_name }}")
    assert made["own"] == ["subject", "text", "html"]
    assert cli.json("template", "show", "--account", account) == made
    made = cli.json("template", "set", "--account", account, "--default", "--text", text)
    assert (made["own"], made["html"]) == (["text"], None)
    assert "text alone" in cli.text("template", "show", "--account", account)
    assert cli.json("template", "set", "--account", account, "--default")["own"] == []
    entries = [entry for entry in cli.audit_trail() if entry["action"] == "template.changed"]
    assert entries[0]["detail"] == {"fields": ["html", "text"]}


def test_all_faults_of_templates_are_reported_at_once(cli: CommandLine, account: str, tmp_path: Path) -> None:
    text, html = written(tmp_path, "a.txt", "Hello"), written(tmp_path, "a.html", HTML + "{{ member }}")
    said = cli.refused(
        *("template", "set", "--account", account, "--text", text, "--html", html, "--subject", "{{ x")
    )
    assert "--text must show {{ registration_link }}." in said
    assert "--html line 2 must have only text, conditions, the names plan_name, sender_name" in said
    assert "--subject must be a Jinja template; line 1 can't be read." in said
    assert cli.json("template", "show", "--account", account)["own"] == []


def test_a_file_that_is_missing_or_not_text_is_reported(
    cli: CommandLine, account: str, tmp_path: Path
) -> None:
    latin = tmp_path / "latin.txt"
    latin.write_bytes("ü".encode("latin-1"))
    for path, reason in ((str(latin), "not UTF-8"), (str(tmp_path / "none"), "No such file")):
        assert reason in cli.refused("template", "set", "--account", account, "--text", path)


def test_a_preview_is_the_mail_as_it_would_be_sent(
    cli: CommandLine, account: str, plan: str, tmp_path: Path
) -> None:
    cli.json("deliverability", "set", "--account", account, "--sender-name", "Example Health")
    shown = {}
    for ending in ("html", "txt", "eml"):
        path = tmp_path / f"preview.{ending}"
        result = cli.json("template", "preview", "--plan", plan, "--output", str(path))
        assert result == {"path": str(path), "subject": "Example Health invites you to Gold <2026>"}
        shown[ending] = path.read_text()
    assert "Gold &lt;2026&gt;" in shown["html"]
    assert "You are invited to Gold <2026>" in shown["txt"]
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in shown["eml"]
    again = cli.text("template", "preview", "--plan", plan, "--output", str(tmp_path / "preview.eml"))
    assert "Example Health invites you" in again


def test_a_preview_needs_a_file_that_can_hold_it(
    cli: CommandLine, account: str, plan: str, tmp_path: Path
) -> None:
    preview = ("template", "preview", "--plan", plan, "--output")
    assert ".html, .txt or .eml" in cli.refused(*preview, str(tmp_path / "preview.pdf"), status=2)
    assert "can't be written" in cli.refused(*preview, str(tmp_path / "none" / "preview.html"))
    cli.json("template", "set", "--account", account, "--text", written(tmp_path, "a.txt", TEXT))
    assert "no HTML part" in cli.refused(*preview, str(tmp_path / "preview.html"))
    assert "plan list" in cli.refused("template", "preview", "--plan", "99", "--output", "x.html")
