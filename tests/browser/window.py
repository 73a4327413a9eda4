"""Windows of the browser, each of a new visitor, and what went wrong in them."""

from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from tests.patience import PATIENCE_SECONDS

Scheme = Literal["light", "dark"]
TELEPHONE = 390  # pixels
DESK = 1280
HEIGHTS = {TELEPHONE: 844, DESK: 800}
# A page that is answered with 404 or 422 is no error of the page.
ANSWER_WITH_STATUS = "Failed to load resource: the server responded with a status of"


class Windows:
    """Opens windows on one service. `errors` holds what scripts and the console said, `requests`
    the address of each request.
    """

    def __init__(self, browser: Browser, address: str) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._browser = browser
        self._address = address
        self._contexts: list[BrowserContext] = []

    def open(
        self,
        path: str = "",
        *,
        width: int = DESK,
        scheme: Scheme = "light",
        with_script: bool = True,
    ) -> Page:
        """A window of a new visitor, without cookies, at this path. `page.goto("/docs")` goes on to
        another path of the service.
        """
        context = self._browser.new_context(
            base_url=self._address,
            viewport={"width": width, "height": HEIGHTS[width]},
            color_scheme=scheme,
            java_script_enabled=with_script,
            reduced_motion="reduce",
            service_workers="block",
            locale="en-US",
            timezone_id="America/New_York",
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        context.on("request", self._note_request)
        context.on("console", self._note_console)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        page = context.new_page()
        if path:
            page.goto(path)
        return page

    def requests_off_host(self) -> list[str]:
        """The requests that went, or would have gone, to another host or port."""
        host = urlsplit(self._address).netloc
        return [each for each in self.requests if urlsplit(each).netloc != host]

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _note_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob", "about"):
            self.requests.append(request.url)

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(ANSWER_WITH_STATUS):
            self.errors.append(f"{message.text} ({message.location['url']})")
