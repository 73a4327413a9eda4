"""Pictures of pages for the documentation: `python -m tests.browser.pictures FOLDER [NAME ...]`.

They are taken from a new demo, whose database is deleted afterwards.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page

from tests.browser.chromium import chromium
from tests.browser.png import smaller
from tests.browser.window import DESK, Scheme, Windows
from tests.patience import wait_until
from tests.postgres import free_port

HISTORY_SECONDS = 120.0  # of two weeks, by thousands of commits, beside tests that wait for disks
ENDINGS: dict[Scheme, str] = {"light": "", "dark": "-dark"}  # of a picture's name

# Gets the open page and what the demo has printed, which has its log-ins.
Steps = Callable[[Page, str], None]


def _no_steps(_page: Page, _printed: str) -> None:
    """The page is pictured as it opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The files NAME.png and, for a dark page, NAME-dark.png: the window after `steps`, which begin
    at `path`.
    """

    name: str
    path: str
    steps: Steps = _no_steps


def _as(role: str, path: str, link: str = "") -> Steps:
    """Sign in with the demo's log-in of this role, go to a path, and follow the first link with this
    text.
    """

    def steps(page: Page, printed: str) -> None:
        email = f"{role}@demo.example"
        [password] = re.findall(rf"{re.escape(email)}\s+(\S+)", printed)
        page.get_by_label("E-mail").fill(email)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.goto(path)
        if link:
            page.get_by_role("link", name=link).first.click()

    return steps


_ACCOUNT = "/console/accounts/1"

PICTURES: list[Picture] = [
    Picture(name="console-files", path="/console", steps=_as("editor", f"{_ACCOUNT}/files")),
    Picture(
        name="console-held",
        path="/console",
        steps=_as("approver", f"{_ACCOUNT}/files?state=held", "nightly"),
    ),
    Picture(name="console-person", path="/console", steps=_as("support", f"{_ACCOUNT}/people/1")),
    Picture(name="console-now", path="/console", steps=_as("viewer", f"{_ACCOUNT}/now")),
]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    names = set(sys.argv[2:])
    unknown = names - {each.name for each in PICTURES}
    if unknown:
        raise SystemExit(f"No picture has this name: {', '.join(sorted(unknown))}")
    wanted = [each for each in PICTURES if not names or each.name in names]
    with tempfile.TemporaryDirectory() as temporary, chromium(Path(temporary)) as browser:
        take(wanted, folder, Path(temporary), browser)


def take(pictures: list[Picture], folder: Path, temporary: Path, browser: Browser) -> None:
    """Write the pictures into the folder. The demo uses the temporary one."""
    with _demo(temporary) as (address, printed):
        for picture, (scheme, ending) in product(pictures, ENDINGS.items()):
            windows = Windows(browser, address)
            page = windows.open(picture.path, width=DESK, scheme=scheme)
            picture.steps(page, printed())
            content = smaller(browser, page.screenshot(animations="disabled", caret="hide"))
            path = folder / f"{picture.name}{ending}.png"
            path.write_bytes(content)
            sys.stdout.write(f"{path}: {len(content) / 1000:.0f} kB\n")
            windows.close()


@contextmanager
def _demo(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """A served demo: its address, and a function that reads what it has printed."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    others = {
        name: value for name, value in os.environ.items() if not name.startswith("FRONTDESK_")
    }
    settings = {"FRONTDESK_DATABASE_URL": f"sqlite:///{folder}/demo.db", "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "frontdesk", "demo", "--serve", "--port", str(port)]
    output = folder / "printed"
    with output.open("wb") as printed:
        process = subprocess.Popen(
            command, env=others | settings, stdout=printed, stderr=subprocess.STDOUT
        )
    try:
        wait_until(
            lambda: _is_ready(address, process, output),
            "the demo to serve",
            at_earliest_after=HISTORY_SECONDS,
        )
        yield address, output.read_text
    finally:
        process.terminate()
        process.wait()


def _is_ready(address: str, process: "subprocess.Popen[bytes]", output: Path) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the demo ended:\n{output.read_text()}")
    try:
        return httpx.get(f"{address}/readyz").is_success
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    main()
