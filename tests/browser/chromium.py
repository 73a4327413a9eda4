"""The Chromium of the tests: where it lies, and how it is started."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.clients.node import TOOLS

# As `make setup` unpacks npm's @sparticuz/chromium: for x86-64, with a font, and with the libraries
# that a bare Debian lacks.
UNPACKED = TOOLS / "chromium"
VARIABLE = "FRONTDESK_CHROMIUM"
NONE_HERE = f"No Chromium: npm's is for x86-64. Name the program of one in the variable {VARIABLE}."
NOT_UNPACKED = "npm's registry did not answer when this was set up; run: make setup"
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Glyphs of the same width on every machine.
    "--font-render-hinting=none",
    # No request leaves this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


class NoChromium(Exception):
    """Says why there is none, and what to do."""


def find_chromium() -> Path:
    """The program. Raises NoChromium on machines that npm's is not for, and FileNotFoundError where
    `make setup` has not unpacked it.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    if platform.machine() != "x86_64":
        raise NoChromium(NONE_HERE)
    program = UNPACKED / "chromium"
    if not program.exists():
        raise FileNotFoundError(NOT_UNPACKED)
    return program


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A running Chromium with a new, empty profile. `folder` is for its own files. Raises as
    `find_chromium`.
    """
    program = find_chromium()
    environment = os.environ | {"HOME": str(folder)}
    if program.parent == UNPACKED:
        environment["LD_LIBRARY_PATH"] = str(UNPACKED / "al2023/lib")
        environment["FONTCONFIG_FILE"] = str(_write_font_settings(folder))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, headless=True, args=OPTIONS, env={**environment}
        )
        try:
            yield browser
        finally:
            browser.close()


def _write_font_settings(folder: Path) -> Path:
    """The packed settings look for fonts in /tmp. With the packed font alone, each machine lays a
    page out in the same way.
    """
    path = folder / "fonts.conf"
    path.write_text(
        f"""<?xml version="1.0"?>
<fontconfig><dir>{UNPACKED}/fonts</dir><cachedir>{folder}/fonts-cache</cachedir></fontconfig>
"""
    )
    return path
