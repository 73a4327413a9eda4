from pathlib import Path

from frontdesk.clock import system_clock
from frontdesk.mail.model import MailMessage
from frontdesk.mailbox.catcher import MailCatcher
from tests.cli.conftest import CommandLine

CONTENT = """\
From: care@example.com\r
To: robin@example.com\r
Subject: You are invited\r
MIME-Version: 1.0\r
Content-Type: multipart/alternative; boundary="b"\r
\r
--b\r
Content-Type: text/plain\r
\r
Hello [bold]in text[/bold]\r
--b\r
Content-Type: text/html\r
\r
<p>Hello in HTML\r
--b--\r
"""


def catch(cli: CommandLine, content: str = CONTENT) -> None:
    db = cli.open()
    conversation = MailCatcher(db, system_clock).open()
    conversation.offer(
        MailMessage("mail@example.com", "robin@example.com", "a@mail.example.com", content.encode())
    )
    conversation.finish()
    db.close()


def test_caught_mails_are_listed_and_shown(cli: CommandLine) -> None:
    assert "Nothing has been caught yet" in cli.text("mailbox", "list")
    catch(cli)
    [item] = cli.json("mailbox", "list")
    assert (item["id"], item["recipient"], item["subject"]) == (1, "robin@example.com", "You are invited")
    assert (item["outcome"], item["message_id"]) == ("caught", "a@mail.example.com")
    assert "You are invited" in cli.text("mailbox", "list")
    item = cli.json("mailbox", "show", "1")
    assert item["headers"]["To"] == "robin@example.com"
    assert (item["text"].strip(), item["html"].strip()) == ("Hello [bold]in text[/bold]", "<p>Hello in HTML")
    assert "Hello [bold]in text[/bold]" in cli.text("mailbox", "show", "1")


def test_a_mail_is_written_to_a_file_as_its_reader_would_see_it(cli: CommandLine, tmp_path: Path) -> None:
    catch(cli)
    path = tmp_path / "mail.html"
    result = cli.json("mailbox", "open", "1", "--output", str(path))
    assert result == {"id": 1, "path": str(path), "opened": False}
    assert path.read_text().strip() == "<p>Hello in HTML"
    catch(cli, "Subject: x\r\n\r\nOnly text\r\n")
    assert str(path) in cli.text("mailbox", "open", "2", "--output", str(path))
    assert path.read_text().strip() == "Only text"
    nowhere = str(tmp_path / "none" / "mail.html")
    assert "can't be written" in cli.refused("mailbox", "open", "1", "--output", nowhere)


def test_a_missing_mail_is_reported(cli: CommandLine) -> None:
    for command in ("show", "open"):
        assert "There is no such message" in cli.refused("mailbox", command, "7")


def test_the_mailbox_is_cleared(cli: CommandLine) -> None:
    catch(cli)
    assert cli.json("mailbox", "clear") == {"deleted": 1}
    assert cli.json("mailbox", "list") == []
    assert "0 messages were deleted" in cli.text("mailbox", "clear")


def test_production_catches_nothing(cli: CommandLine) -> None:
    assert "Only a sandbox catches mail" in cli.refused("mailbox", "list", environment="production")
