"""Pictures of pages for the documentation."""

import base64
import struct
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.browser.pictures import PICTURES, Picture, take
from tests.browser.png import smaller
from tests.browser.window import TELEPHONE, Windows

COLOURS = """async (address) => {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const context = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  context.drawImage(picture, 0, 0);
  const at = (x, y) => [...context.getImageData(x, y, 1, 1).data];
  return [at(0, 0), at(picture.width - 1, picture.height - 1)];
}"""


def test_a_smaller_picture_has_the_same_size_and_colours(
    windows: Windows, browser: Browser
) -> None:
    page = windows.open("/docs", width=TELEPHONE)
    png = page.screenshot()
    small = smaller(browser, png)
    assert len(small) < 0.7 * len(png)
    assert struct.unpack(">II", small[16:24]) == (390, 844)
    seen = [
        page.context.new_page().evaluate(COLOURS, f"data:image/png;base64,{text.decode()}")
        for text in (base64.b64encode(png), base64.b64encode(small))
    ]
    assert seen[0] == seen[1]


def test_pictures_are_taken_of_a_demo(browser: Browser, tmp_path: Path) -> None:
    assert len({each.name for each in PICTURES}) == len(PICTURES)
    printed = []

    def steps(page: Page, text: str) -> None:
        printed.append((page.title(), text))

    mailbox = Picture(name="mailbox", path="/sandbox/mailbox", steps=steps)
    take([mailbox], tmp_path, tmp_path, browser)
    assert printed[0][0] == "Caught mail"
    assert "curl" in printed[0][1]
    for name in ("mailbox.png", "mailbox-dark.png"):
        assert 0 < (tmp_path / name).stat().st_size < 60_000
