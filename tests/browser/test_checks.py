"""The checks of the browser tests find what they look for, and each test has a window of its own."""

import pytest
from playwright.sync_api import Error

from tests.browser.checks import first_view_bytes, focus_is_seen, no_sideways_scroll, no_violations
from tests.browser.served import Served
from tests.browser.window import Windows

ADD = "markup => document.querySelector('main').insertAdjacentHTML('beforeend', markup)"


@pytest.mark.parametrize("with_script", [True, False])
def test_axe_sees_a_picture_without_words_and_faint_letters(
    windows: Windows, with_script: bool
) -> None:
    page = windows.open("/docs", with_script=with_script)
    no_violations(page)
    page.evaluate(ADD, '<img src="/docs/favicon.svg">')
    with pytest.raises(AssertionError, match="image-alt"):
        no_violations(page)
    page.goto("/docs")
    page.evaluate(ADD, '<p id="faint">Too faint</p>')
    page.evaluate("document.getElementById('faint').style.color = '#999'")
    with pytest.raises(AssertionError, match="color-contrast"):
        no_violations(page)


def test_a_page_that_is_too_wide_and_a_hidden_focus_are_found(windows: Windows) -> None:
    page = windows.open("/docs", width=390)
    no_sideways_scroll(page)
    focus_is_seen(page)
    page.evaluate(ADD, '<a id="plain" href="/docs">plain</a>')
    page.evaluate("document.getElementById('plain').style.outline = 'none'")
    with pytest.raises(AssertionError, match="no ring"):
        focus_is_seen(page)
    page.evaluate("document.querySelector('main').style.width = '500px'")
    with pytest.raises(AssertionError, match="wider than 390 px"):
        no_sideways_scroll(page)


def test_requests_to_elsewhere_and_errors_of_scripts_are_noted(windows: Windows) -> None:
    page = windows.open("/docs")
    assert windows.requests_off_host() == []
    assert windows.errors == []
    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        windows.open("http://elsewhere.example/")
    assert windows.requests_off_host() == ["http://elsewhere.example/"]
    page.evaluate("setTimeout(() => nothing.here)")
    page.evaluate(ADD, '<img alt="" src="http://elsewhere.example/dot.png">')
    page.wait_for_timeout(100)
    assert "nothing is not defined" in windows.errors
    assert any("violates the following Content Security Policy" in each for each in windows.errors)
    windows.errors.clear()
    windows.requests.clear()


def test_a_window_is_of_a_new_visitor_and_outlives_a_restart(
    windows: Windows, served: Served
) -> None:
    page = windows.open("/docs")
    page.evaluate("localStorage.setItem('seen', 'yes')")
    served.restart()
    page.reload()
    assert page.evaluate("localStorage.getItem('seen')") == "yes"
    other = windows.open("/docs")
    assert other.evaluate("localStorage.getItem('seen')") is None


def test_the_first_view_is_weighed_with_all_that_it_loads(windows: Windows) -> None:
    page = windows.open()
    alone = int(page.request.get("/docs/site.css").headers["content-length"])
    assert alone < first_view_bytes(page, "/docs") < 100_000
