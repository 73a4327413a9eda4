"""A browser over HTTP, as the tests of the console use it: it keeps cookies, follows redirects, and
sends a form of the page that it is on, with that form's hidden fields.
"""

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

from starlette.testclient import TestClient

ORIGIN = "https://api.example.com"
# The drawn signs, as characters.
SIGNS = {"good": "●", "warn": "▲", "bad": "▲", "plain": "◌", "draft": "◔", "done": "✓"}


class _Forms(HTMLParser):
    """The forms of a page: the action of each, and the fields with their values."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self._select = ""
        self._is_chosen = False  # in an option without a value, which is its text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        if not self.forms:
            return
        fields = self.forms[-1][1]
        if tag == "input" and "name" in given:
            is_choice = given.get("type") in ("radio", "checkbox")
            if not is_choice or "checked" in given:
                fields[given["name"]] = given.get("value", "")
        if tag == "select":
            self._select = given.get("name", "")
        if tag == "option":
            self._is_chosen = "selected" in given and "value" not in given
        if tag == "option" and self._select and "selected" in given:
            fields[self._select] = given.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._is_chosen:
            self.forms[-1][1][self._select] = data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("option", "select"):
            self._is_chosen = False


class Browser:
    """`page` is the text of the page that it is on, `answer` the last answer."""

    def __init__(self, http: TestClient) -> None:
        self.http = http
        self.answer: Any = None
        self.headers = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}

    @property
    def page(self) -> str:
        return str(self.answer.text)

    @property
    def path(self) -> str:
        return str(self.answer.url.raw_path.decode())

    @property
    def status(self) -> int:
        return int(self.answer.status_code)

    def open(self, path: str, **headers: str) -> "Browser":
        """Go to an address, and where that leads."""
        self.answer = self.http.get(path, headers=self.headers | headers, follow_redirects=True)
        return self

    def form(self, action: str) -> dict[str, str]:
        """The fields of the page's form with this action. Raises LookupError without one."""
        parser = _Forms()
        parser.feed(self.page)
        for found, fields in parser.forms:
            if found == action:
                return fields
        raise LookupError(f"no form {action} among {[found for found, _ in parser.forms]}")

    def send(self, action: str, **fields: str) -> "Browser":
        """Fill in a form of this page, press its button, and follow where that leads."""
        return self.post(action, self.form(action) | fields)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> "Browser":
        """Send fields as a form would, with these headers instead of the browser's own."""
        self.answer = self.http.post(
            path, data=fields, headers=self.headers | headers, follow_redirects=True
        )
        return self


def words_of(html: str) -> str:
    """The text of a piece of a page, without its tags; a drawn sign is a character."""
    signed = re.sub('<svg class="sign (\\w+)".*?</svg>', lambda sign: SIGNS[sign[1]], html)
    signed = re.sub("</?bdi[^>]*>", "", signed)
    return " ".join(unescape(re.sub("<[^>]+>", " ", signed)).split())


def section(browser: Browser, name: str) -> str:
    """The words of a part of the page."""
    found = re.search(
        rf"<h2>{name}</h2>(.*?)(?:<h2>|<div class=.end|</main>)", browser.page, re.DOTALL
    )
    assert found, name
    return words_of(found[1])


def text_of(browser: Browser) -> str:
    """The words of the page's main part."""
    [main] = re.findall(r"<main.*</main>", browser.page, re.DOTALL)
    return words_of(main)
