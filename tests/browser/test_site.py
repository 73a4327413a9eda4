"""The documentation's site in the browser: everybody can use it, its search finds, its examples can
be copied, its headings linked, and its reference asks before it changes something.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Dialog, Error, Page, expect

from frontdesk.api.site import SECTIONS
from frontdesk.app import App
from frontdesk.config import Config, Environment
from tests.browser.checks import TWO_LOOKS, focus_is_seen, no_sideways_scroll, shows_well
from tests.browser.served import Served
from tests.browser.window import DESK, HEIGHTS, TELEPHONE, Scheme, Windows
from tests.conftest import SetClock, open_for_test
from tests.postgres import free_port

PAGES = [f"/docs/{slug}" for slugs in SECTIONS.values() for slug in slugs]
# Between them they have each kind of thing that a page has.
OF_EACH_KIND = ["/docs", "/docs/first-call", "/docs/states", "/problems"]
WIDTHS = (TELEPHONE, DESK)
MEMBER = "/v2/plans/1/eligibility"
SIGN = "link => getComputedStyle(link, '::after').opacity"
# The number of examples whose button lies over their code.
COVERED = """() => [...document.querySelectorAll('.code')].filter((box) => {
  const button = box.querySelector('button').getBoundingClientRect();
  const code = box.querySelector('pre').getBoundingClientRect();
  return button.left < code.right && code.left < button.right
    && button.top < code.bottom && code.top < button.bottom;
}).length"""


def test_each_page_shows_well_on_a_telephone_in_the_dark_and_fits_a_desk(windows: Windows) -> None:
    page = windows.open(width=TELEPHONE, scheme="dark")
    for path in PAGES:
        page.goto(path)
        shows_well(page, [(TELEPHONE, "dark")])
        page.set_viewport_size({"width": DESK, "height": HEIGHTS[DESK]})
        no_sideways_scroll(page)


def test_each_kind_of_page_shows_well_in_each_look(windows: Windows) -> None:
    page = windows.open()
    for path in OF_EACH_KIND:
        page.goto(path)
        shows_well(page)


def test_the_keyboard_reaches_everything_and_its_place_is_seen(windows: Windows) -> None:
    page = windows.open("/docs/first-call")
    focus_is_seen(page)
    page.goto("/docs/first-call")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()


def test_the_search_finds_codes_pages_and_operations(windows: Windows) -> None:
    page = windows.open("/docs")
    assert found(page, "not_unique")[0] == "/problems#not_unique"
    of_dry_runs = [each.split("#")[0] for each in found(page, "dry run")]
    assert {"/docs/daily-file", "/docs/console"} <= set(of_dry_runs)
    operation = "/docs/reference#tag/eligibility/enrolMember"
    assert operation in found(page, "post eligibility")
    shows_well(page, TWO_LOOKS)
    page.get_by_role("searchbox").fill("xyzzy")
    expect(page.locator("#found")).to_contain_text("Nothing matches")
    page.get_by_role("searchbox").fill("not_unique")
    page.get_by_role("searchbox").press("Enter")
    page.wait_for_url("**/problems#not_unique")


def found(page: Page, words: str) -> list[str]:
    """The addresses that the search shows for these words."""
    page.get_by_role("searchbox").fill("")
    page.get_by_role("searchbox").fill(words)
    page.locator("#found a").first.wait_for()
    links = page.locator("#found a").all()
    return [link.get_attribute("href") or "" for link in links]


def test_the_menu_of_a_telephone_opens(windows: Windows) -> None:
    page = windows.open("/docs", width=TELEPHONE)
    link = page.get_by_role("navigation").get_by_role("link", name="Your first call")
    expect(link).to_be_hidden()
    menu = page.get_by_role("button", name="Menu")
    menu.click()
    expect(menu).to_have_attribute("aria-expanded", "true")
    shows_well(page, [(TELEPHONE, "light")])
    link.click()
    page.wait_for_url("**/docs/first-call")


def test_without_script_every_page_can_be_reached(windows: Windows) -> None:
    page = windows.open("/docs", width=TELEPHONE, with_script=False)
    expect(page.get_by_role("searchbox")).to_be_hidden()
    shows_well(page, TWO_LOOKS)
    page.set_viewport_size({"width": TELEPHONE, "height": 844})
    page.get_by_role("navigation").get_by_role("link", name="Your first call").click()
    page.wait_for_url("**/docs/first-call")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_button_that_copies_covers_no_code(windows: Windows, width: int) -> None:
    page = windows.open("/docs/first-call", width=width)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert page.locator(".code").count() > 3
    assert page.evaluate(COVERED) == 0
    first = page.locator(".code").first
    first.get_by_role("button", name="Copy").click()
    expect(first.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == first.locator("code").text_content()


def test_each_heading_leads_to_itself(windows: Windows) -> None:
    page = windows.open("/docs/interface")
    headings = page.locator("main :is(h2, h3, h4)")
    links = page.locator("main :is(h2, h3, h4) > a:only-child")
    assert links.count() == headings.count() > 20
    link = page.get_by_role("heading", name="Errors", exact=True).get_by_role("link")
    assert link.evaluate(SIGN) == "0"
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert link.evaluate(SIGN) == "1"
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/interface#errors")
    page.goto("/problems")
    page.get_by_role("link", name="not_unique", exact=True).click()
    page.wait_for_url("**/problems#not_unique")


def test_the_reference_shows_well(windows: Windows) -> None:
    page = open_reference(windows, width=DESK, scheme="light")
    expect(page.get_by_text("Headers of every operation").first).to_be_visible()
    shows_well(page, [(DESK, "light")])


def test_the_request_editor_of_the_reference_is_a_dialog_that_shows_well(windows: Windows) -> None:
    page = open_reference(windows, width=TELEPHONE, scheme="dark")
    page.goto("/docs/reference#tag/eligibility/enrolMember")
    page.get_by_role("button", name="Test Request").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Send").first).to_be_visible()
    shows_well(page, [(TELEPHONE, "dark")])
    assert page.evaluate("document.querySelector('.references-rendered').inert")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert not page.evaluate("document.querySelector('.references-rendered').inert")


def open_reference(windows: Windows, *, width: int = DESK, scheme: Scheme = "light") -> Page:
    page = windows.open("/docs/reference", width=width, scheme=scheme)
    page.locator(".references-rendered").wait_for()
    return page


def send(page: Page, path: str, method: str) -> int:
    """The status of a call that a script of the page sends. Raises Error where none is sent."""
    status: int = page.evaluate(
        "([path, method]) => fetch(path, {method}).then((answer) => answer.status)", [path, method]
    )
    return status


class Questions:
    """The dialogs of a page: `asked` has their words, `accepts` answers them."""

    def __init__(self, page: Page) -> None:
        self.asked: list[str] = []
        self.accepts = True
        page.on("dialog", self._answer)

    def _answer(self, dialog: Dialog) -> None:
        self.asked.append(dialog.message)
        if self.accepts:
            dialog.accept()
        else:
            dialog.dismiss()


def test_a_changing_call_of_the_reference_asks_first(windows: Windows) -> None:
    page = open_reference(windows)
    questions = Questions(page)
    assert send(page, "/v2/plans", "GET") == 401
    assert send(page, "/oauth/token", "POST") == 401
    assert questions.asked == []
    assert send(page, MEMBER, "POST") == 401
    assert questions.asked == [f"Send POST {MEMBER}? It changes stored data."]
    questions.accepts = False
    before = len(windows.requests)
    for method in ("POST", "delete"):
        with pytest.raises(Error, match="Not sent"):
            send(page, MEMBER, method)
    assert len(questions.asked) == 3
    assert windows.requests[before:] == []


@contextmanager
def in_production(browser: Browser, config: Config, clock: SetClock) -> Iterator[Windows]:
    """Windows on a service of the same database that is in production."""
    settings = replace(config, environment=Environment.PRODUCTION)

    def make_app() -> App:
        return App(settings, open_for_test(config.database_url, "service"), clock)

    with Served(free_port(), make_app) as served:
        windows = Windows(browser, served.address)
        yield windows
        windows.close()


def test_changing_calls_are_off_in_production_until_the_reader_allows_them(
    browser: Browser, config: Config, clock: SetClock
) -> None:
    with in_production(browser, config, clock) as windows:
        page = open_reference(windows)
        questions = Questions(page)
        with pytest.raises(Error, match="Changing calls are off"):
            send(page, MEMBER, "POST")
        assert questions.asked[0].startswith("Changing calls are off on this page.")
        page.get_by_label("Changing calls").check()
        assert send(page, MEMBER, "POST") == 401
        assert questions.asked[1:] == [f"Send POST {MEMBER}? It changes stored data."]


def test_the_site_has_the_colours_of_the_other_pages(windows: Windows) -> None:
    colours = "getComputedStyle(document.body).getPropertyValue('--accent')"
    page = windows.open("/docs")
    light = page.evaluate(colours)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colours)
    page.goto("/register/unknown")
    assert page.evaluate(colours) == dark != light
