"""The chooser of a file in the browser: with and without script, small and large, and what people see
when nothing came of it.
"""

import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from frontdesk.db import Database
from frontdesk.files.drafts import content_part, unfinished_drafts
from frontdesk.usage.model import StorageUsedUp
from frontdesk.users.model import Role
from tests.browser.checks import TWO_LOOKS, first_view_bytes, focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.signing import Staff
from tests.browser.window import Windows
from tests.conftest import SetClock
from tests.files.loading import csv_of, row

Upload = Callable[..., None]

MIB = 1024 * 1024
PAGE_BYTES = 100_000
CENSUS = csv_of([row(1), row(2)])
LARGE = b"external_id,dob\r\n" + b"E-1001,1980-02-03\r\n" * (6 * MIB // 19)


@pytest.fixture
def upload(tmp_path: Path) -> Upload:
    """Chooses a file with this content on the page, and sends it."""

    def send(page: Page, content: bytes, name: str = "census.csv") -> None:
        (tmp_path / name).write_bytes(content)
        page.get_by_label("Choose a file").set_input_files(tmp_path / name)
        page.get_by_role("button", name="Upload").click()

    return send


@pytest.fixture
def drafts(db: Database, staff: Staff) -> Callable[[], list[int]]:
    return lambda: db.ask(lambda tx: unfinished_drafts(tx, staff.account))


@pytest.mark.parametrize("with_script", [True, False])
def test_a_file_is_chosen_on_the_list_of_files_and_its_plan_is_said(
    staff: Staff, served: Served, upload: Upload, *, with_script: bool
) -> None:
    page = staff.open(Role.EDITOR, "files", with_script=with_script)
    expect(page.get_by_text("Nothing changes before you apply it.")).to_be_visible()
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    upload(page, CENSUS)
    expect(page).to_have_url(re.compile(r"/uploads/\d+/plan$"))
    plan_address = page.url
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    expect(page.get_by_role("listitem").filter(has_text="Plan")).to_have_attribute(
        "aria-current", "step"
    )
    assert not page.get_by_label("Changes only").is_checked()
    assert not page.get_by_label("Everyone in this plan").is_checked()
    page.go_back()
    expect(page.get_by_role("link", name="census.csv")).to_be_visible()
    shows_well(page, TWO_LOOKS)
    served.restart()
    page.reload()
    page.get_by_role("link", name="census.csv").click()
    expect(page).to_have_url(plan_address)
    page.get_by_role("link", name="Uploads").click()
    expect(page.get_by_text("Draft: say its plan")).to_be_visible()
    shows_well(page, TWO_LOOKS)
    page.get_by_role("link", name="census.csv").click()
    page.get_by_role("button", name="Discard this upload").click()
    expect(page.get_by_text("No upload waits for a step.")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("it was discarded, or over 24 hours have passed")).to_be_visible()
    shows_well(page, TWO_LOOKS)
    assert first_view_bytes(page, f"/console/accounts/{staff.account}/uploads") < PAGE_BYTES


def test_a_large_file_shows_how_much_of_it_is_sent(
    staff: Staff, db: Database, upload: Upload, drafts: Callable[[], list[int]]
) -> None:
    page = staff.open(Role.EDITOR, "uploads")
    page.evaluate(
        """() => {
          window.seen = [];
          const line = document.querySelector("[data-progress]");
          const look = () => window.seen.push(line.textContent.trim());
          new MutationObserver(look).observe(line, { childList: true, subtree: true });
          addEventListener("pagehide", () => sessionStorage.setItem("seen", window.seen.join("|")));
        }"""
    )
    # On a fast machine all is sent before the browser tells of a part.
    pace = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 4 * MIB}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", pace)
    upload(page, LARGE)
    expect(page).to_have_url(re.compile(r"/plan$"))
    seen = page.evaluate("sessionStorage.getItem('seen')").split("|")
    assert any(re.fullmatch(r"[\d.]+ of 6\.0 MiB are sent\.", each) for each in seen)
    assert seen[-1] == "Sent. It is being stored."
    [draft_id] = drafts()
    parts: list[bytes] = []
    while part := db.ask(lambda tx: content_part(tx, draft_id, len(parts))):
        parts.append(part)
    assert len(parts) > 3
    assert b"".join(map(zlib.decompress, parts)) == LARGE


@pytest.mark.parametrize("with_script", [True, False])
def test_a_large_file_that_is_refused_is_answered_by_a_page(
    staff: Staff, upload: Upload, drafts: Callable[[], list[int]], *, with_script: bool
) -> None:
    page = staff.open(Role.EDITOR, "uploads", with_script=with_script)
    upload(page, b"%PDF-1.7 " + LARGE, "scan.pdf")
    expect(page.get_by_role("alert").first).to_contain_text("looks like PDF")
    expect(page.get_by_role("alert").first).to_contain_text("Nothing was stored.")
    shows_well(page, TWO_LOOKS)
    assert drafts() == []
    upload(page, CENSUS)
    expect(page).to_have_url(re.compile(r"/uploads/\d+/plan$"))


@pytest.mark.parametrize("with_script", [True, False])
def test_a_large_file_is_refused_with_the_reason_however_long_it_takes_to_send(
    staff: Staff,
    served: Served,
    upload: Upload,
    drafts: Callable[[], list[int]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    with_script: bool,
) -> None:
    """Used-up storage, and without script, which looks at the size itself, a file that is too large."""

    def refuse(_account_id: int) -> None:
        raise StorageUsedUp(served.app.clock())

    monkeypatch.setattr(served.app, "refuse_used_up_storage", refuse)
    page = staff.open(Role.EDITOR, "uploads", with_script=with_script)
    upload(page, LARGE)
    expect(page.get_by_role("alert").first).to_contain_text("as many bytes as it may in a day")
    expect(page.get_by_role("alert").first).to_contain_text("Nothing was stored.")
    assert drafts() == []
    if with_script:
        return
    config = replace(served.app.config, file_limit_mib=5)
    monkeypatch.setattr(served.app, "config", config)
    upload(page, LARGE)
    expect(page.get_by_role("alert").first).to_contain_text("may have 5,242,880 bytes at most")


@pytest.mark.parametrize("with_script", [True, False])
def test_a_session_that_ends_before_a_large_file_is_sent_keeps_what_was_chosen(
    staff: Staff,
    clock: SetClock,
    upload: Upload,
    drafts: Callable[[], list[int]],
    *,
    with_script: bool,
) -> None:
    page = staff.open(Role.EDITOR, "uploads", with_script=with_script)
    page.get_by_text("that is not in UTF-8").click()
    page.get_by_label("Encoding").select_option("cp1252")
    shows_well(page, TWO_LOOKS)
    clock.advance(31 * 60)
    upload(page, LARGE)
    expect(page.get_by_role("alert").first).to_contain_text("Nothing was done")
    assert drafts() == []
    staff.sign_in(page, Role.EDITOR)
    expect(page.get_by_text("A file has to be chosen again.")).to_be_visible()
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_role("alert").first).to_contain_text("Choose a file.")
    expect(page.get_by_label("Encoding")).to_have_value("cp1252")
    upload(page, CENSUS)
    expect(page).to_have_url(re.compile(r"/uploads/\d+/plan$"))


def test_an_upload_that_breaks_off_says_so_and_can_be_sent_again(
    staff: Staff, windows: Windows, upload: Upload, drafts: Callable[[], list[int]]
) -> None:
    page = staff.open(Role.EDITOR, "files")
    page.context.set_offline(True)  # Playwright's own
    upload(page, CENSUS)
    expect(page.get_by_role("alert")).to_have_text(
        "The upload broke off. Nothing was stored: choose the file again."
    )
    shows_well(page, TWO_LOOKS)
    assert drafts() == []
    assert all("ERR_INTERNET_DISCONNECTED" in each for each in windows.errors)
    windows.errors.clear()
    page.context.set_offline(False)
    page.get_by_role("button", name="Upload").click()
    expect(page).to_have_url(re.compile(r"/uploads/\d+/plan$"))


def test_an_upload_that_breaks_off_after_the_session_has_ended_leads_to_the_sign_in(
    staff: Staff, windows: Windows, clock: SetClock, upload: Upload
) -> None:
    """As a refusal that came while a large file was still sent: the browser drops it."""
    page = staff.open(Role.EDITOR, "uploads")
    page.route("**/uploads", lambda route: route.abort() if of_form(route) else route.continue_())
    clock.advance(31 * 60)
    upload(page, CENSUS)
    expect(page).to_have_url(re.compile(r"/sign-in\?next="))
    assert all("ERR_FAILED" in each for each in windows.errors)
    windows.errors.clear()


def test_a_proxys_own_answer_to_an_upload_is_not_shown(
    staff: Staff, windows: Windows, clock: SetClock, upload: Upload
) -> None:
    """As nginx answers a file whose connection the service has ended."""
    page = staff.open(Role.EDITOR, "uploads")
    bad_gateway = "<html><body><h1>502 Bad Gateway</h1></body></html>"

    def answer(route: Route) -> None:
        if of_form(route):
            route.fulfill(status=502, content_type="text/html", body=bad_gateway)
        else:
            route.continue_()

    page.route("**/uploads", answer)
    upload(page, CENSUS)
    expect(page.get_by_role("alert")).to_contain_text("The upload broke off.")
    clock.advance(31 * 60)
    page.get_by_role("button", name="Upload").click()
    expect(page).to_have_url(re.compile(r"/sign-in\?next="))
    assert windows.errors == []


def of_form(route: Route) -> bool:
    return route.request.method == "POST"
