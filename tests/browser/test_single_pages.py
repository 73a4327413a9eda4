"""The pages that stand alone, in the browser: where the links of an invitation lead, and the mails
that the sandbox has caught.
"""

import io
from email.message import EmailMessage
from email.policy import SMTP

import httpx
import pytest
from playwright.sync_api import expect

from frontdesk.db import Database
from frontdesk.mail.model import MailMessage
from frontdesk.mailbox.catcher import MailCatcher
from tests.browser.checks import first_view_bytes, focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.window import TELEPHONE, Windows
from tests.conftest import Api, SetClock
from tests.factories import Customer
from tests.invitations.mails import MailedInvitation, mailed, suppressed

LONG_LINK = "https://members.example.com/register?token=" + "aB3-" * 40


@pytest.fixture
def invitation(served: Served, db: Database, customer: Customer) -> MailedInvitation:
    with httpx.Client(base_url=served.address) as http:
        api = Api(http, customer.token, io.StringIO())  # type: ignore[arg-type]
        return mailed(api, db, customer)


def catch(db: Database, clock: SetClock, number: int) -> None:
    mail = EmailMessage()
    mail["To"] = f"robin-{number}.with-a-long-address@mail.example.com"
    mail["Subject"] = "You are invited: create your account" if number else ""
    mail["List-Unsubscribe"] = f"<{LONG_LINK}>"
    mail.set_content(f"Create your account:\n{LONG_LINK}\n")
    mail.add_alternative(f'<p>Hello. <a href="{LONG_LINK}">Create</a></p>', subtype="html")
    conversation = MailCatcher(db, clock).open()
    message_id = f"mail-{number}@example.com"
    conversation.offer(
        MailMessage("mail@example.com", mail["To"], message_id, mail.as_bytes(policy=SMTP))
    )
    assert conversation.finish()[0] == 250


def test_the_page_before_an_account_has_one_shows_well(
    windows: Windows, invitation: MailedInvitation
) -> None:
    page = windows.open(f"/register/{invitation.tokens.registration}")
    expect(page.get_by_role("heading")).to_contain_text("You are invited to")
    shows_well(page)
    page.goto("/register/unknown")
    expect(page.get_by_role("heading")).to_have_text("This link leads nowhere")
    shows_well(page)


def test_a_person_unsubscribes_by_keyboard_and_without_script(
    windows: Windows, invitation: MailedInvitation, db: Database
) -> None:
    page = windows.open(
        f"/unsubscribe/{invitation.tokens.unsubscribe}", width=TELEPHONE, with_script=False
    )
    shows_well(page)
    focus_is_seen(page)
    page.get_by_role("button").focus()
    assert suppressed(db) == {}
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("You will get no more invitations")
    shows_well(page)
    assert suppressed(db) == {invitation.address: "unsubscribe"}


def test_the_mailbox_of_the_sandbox_shows_well(
    windows: Windows, db: Database, clock: SetClock
) -> None:
    page = windows.open("/sandbox/mailbox")
    expect(page.get_by_role("main")).to_contain_text("Nothing has been caught yet")
    shows_well(page)
    for number in range(3):
        catch(db, clock, number)
    page.reload()
    shows_well(page)
    focus_is_seen(page)
    page.get_by_role("link", name="You are invited").first.click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("link", name="Create")).to_be_visible()
    shows_well(page)
    focus_is_seen(page)
    assert first_view_bytes(windows.open(), "/sandbox/mailbox") < 20_000
