"""The documentation's site in Chromium, at the width of a telephone and of a desk, by its DevTools
protocol over a pipe.
"""

import json
import os
import select
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from frontdesk.api.site import SECTIONS
from tests.faults.server import Server
from tests.lab.conftest import Tell
from tests.lab.parts import running
from tests.patience import PATIENCE_SECONDS, wait_until

OPTIONS = [
    "headless=new",
    "no-sandbox",
    "disable-gpu",
    "disable-dev-shm-usage",
    "disable-background-networking",
]
OPTIONS += ["disable-component-update", "disable-sync", "no-first-run", "remote-debugging-pipe"]
OPTIONS += ["host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
PAGES = [f"/docs/{slug}" for slugs in SECTIONS.values() for slug in slugs] + [
    "/docs",
    "/docs/reference",
    "/problems",
]
WIDTHS = (390, 1280)
IS_SETTLED = """document.readyState == 'complete' && document.body.innerText.length > 200 &&
    (!location.pathname.endsWith('/reference') || document.body.innerText.includes('OpenAPI 3.1'))"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ERRORS = {
    "Runtime.exceptionThrown": lambda told: str(told["exceptionDetails"]),
    "Runtime.consoleAPICalled": lambda told: (
        str(told["args"]) if told["type"] in ("error", "assert") else ""
    ),
    "Log.entryAdded": lambda told: str(told["entry"]) if told["entry"]["level"] == "error" else "",
    "Network.loadingFailed": lambda told: "" if told.get("canceled") else str(told),
}


class Page:
    """A tab. `errors` and `hosts` hold what its pages complained of, and where their requests went."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._id = 0
        self._session = ""
        self._rest = b""
        self._messages = deque[Any]()
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> Any:
        """The result of a command of the protocol."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while (told := self._next()).get("id") != self._id:
            self._note(told.get("method", ""), told.get("params", {}))
        assert "error" not in told, told
        return told["result"]

    def evaluate(self, expression: str) -> Any:
        result = self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, url: str, *, width: int) -> None:
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844,
            deviceScaleFactor=1,
            mobile=width < 800,
        )
        self.do("Page.navigate", url=url)
        path = urlsplit(url).path
        wait_until(
            lambda: self.evaluate(f"location.pathname.startsWith('{path}') && {IS_SETTLED}"), url
        )
        time.sleep(0.1)  # what a script does after that

    def _next(self) -> Any:
        while not self._messages:
            ready, _, _ = select.select([self._reading], [], [], PATIENCE_SECONDS)
            received = os.read(self._reading, 1_000_000) if ready else b""
            assert received, "Chromium is silent"
            *whole, self._rest = (self._rest + received).split(b"\0")
            self._messages.extend(map(json.loads, whole))
        return self._messages.popleft()

    def _note(self, event: str, told: Any) -> None:
        if event == "Network.requestWillBeSent":
            parts = urlsplit(told["request"]["url"])
            self.hosts |= {parts.netloc} if parts.scheme not in ("data", "blob") else set()
        elif event in ERRORS and (error := ERRORS[event](told)):
            self.errors.append(error)


@contextmanager
def chromium(home: Path) -> Iterator[Page]:
    to_chromium, writing = os.pipe()
    reading, from_chromium = os.pipe()
    # It reads commands from its file 3 and writes answers to its file 4.
    pipes = (to_chromium, from_chromium)
    command = [
        "/bin/bash",
        "-c",
        f'exec "$@" 3<&{to_chromium} 4>&{from_chromium}',
        "chromium",
        "/usr/bin/chromium",
    ]
    try:
        options = [f"--{option}" for option in (*OPTIONS, f"user-data-dir={home}/profile")]
        with running([*command, *options], home, files=pipes):
            yield Page(reading, writing)
    finally:
        for file in (*pipes, reading, writing):
            os.close(file)


def test_no_page_complains_leaves_the_host_or_scrolls_sideways(
    sqlite_url: str, home: Path, tmp_path: Path, tell: Tell
) -> None:
    with Server(sqlite_url, tmp_path / "log") as server, chromium(home) as page:
        base = f"http://127.0.0.1:{server.port}"
        for path in PAGES:
            for width in WIDTHS:
                page.open(base + path, width=width)
                assert page.evaluate(TOO_WIDE) <= 0, f"{path} scrolls sideways at {width} px"
                assert page.errors == [], path
    assert page.hosts == {f"127.0.0.1:{server.port}"}
    tell(f"{len(PAGES)} pages, each {' and '.join(map(str, WIDTHS))} px wide")
