"""What each page and state must be: usable by everybody, in light and dark, on a telephone and at a
desk.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from playwright.sync_api import Page, Request

from tests.browser.window import DESK, HEIGHTS, TELEPHONE, Scheme
from tests.clients.node import MODULES

Look = tuple[int, Scheme]
EACH_LOOK: Sequence[Look] = (
    (DESK, "light"),
    (DESK, "dark"),
    (TELEPHONE, "dark"),
    (TELEPHONE, "light"),
)
# For long pages: each width once, each scheme once.
TWO_LOOKS: Sequence[Look] = ((DESK, "light"), (TELEPHONE, "dark"))
# Of WCAG 2.2, and not among the rules that axe applies by itself.
MORE_RULES = {"target-size": {"enabled": True}}
RUN_AXE = """async (options) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 200))]);
}"""
# In a window without script no timer fires, and axe sets some that fire at once.
TIMERS_WITHOUT_SCRIPT = """window.setTimeout = (call, _wait, ...words) => {
  if (typeof call === 'function') Promise.resolve().then(() => call(...words));
  return 0;
};"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@cache
def _axe() -> str:
    return (MODULES / "axe-core/axe.min.js").read_text(encoding="utf-8")


def shows_well(page: Page, looks: Sequence[Look] = EACH_LOOK) -> None:
    """The page as it is now, in each look: nothing for axe to find, and nothing to scroll to
    sideways. The window has the last look after it.
    """
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
        page.emulate_media(color_scheme=scheme)
        no_sideways_scroll(page)
        no_violations(page)


def no_violations(page: Page) -> None:
    """No violation for axe in the page as it looks now. The page's policy refuses a script that is put
    into it, so the browser evaluates axe, as its developer tools would.
    """
    if not page.evaluate("'axe' in window"):
        if page.evaluate("matchMedia('(scripting: none)').matches"):
            page.evaluate(TIMERS_WITHOUT_SCRIPT)
        page.evaluate(_axe())
    violations = page.evaluate(RUN_AXE, {"rules": MORE_RULES})
    assert violations == [], f"axe at {page.url}: {violations}"


def no_sideways_scroll(page: Page) -> None:
    assert page.viewport_size is not None
    beyond = page.evaluate(TOO_WIDE)
    assert beyond <= 0, f"{page.url} is {beyond} px wider than {page.viewport_size['width']} px"


def focus_is_seen(page: Page) -> None:
    """Press Tab until the focus has been everywhere: each element that has it shows a ring of 2 px,
    and nothing covers it.
    """
    page.evaluate("window.hadFocus = new WeakSet()")
    count = 0
    while (focus := _next_focus(page)) is not None:
        count += 1
        assert focus["ring"] >= 2, f"no ring of 2 px around {focus['html']} at {page.url}"
        assert focus["is_on_top"], f"{focus['html']} is covered at {page.url}"
        assert count < 500, f"the focus never comes to an end at {page.url}"
    assert count > 0, f"nothing takes the focus at {page.url}"


FOCUS = """() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return null;
  const style = getComputedStyle(element);
  const box = element.getClientRects()[0];
  const x = Math.min(Math.max(box.left + Math.min(box.width, 20) / 2, 0), innerWidth - 1);
  const y = Math.min(Math.max(box.top + Math.min(box.height, 20) / 2, 0), innerHeight - 1);
  const top = document.elementFromPoint(x, y);
  // A frame has the focus as long as something in it has it, and shows the ring there.
  const isFrame = element.tagName === "IFRAME";
  const isNew = isFrame || !window.hadFocus.has(element);
  window.hadFocus.add(element);
  const ring = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
  return {
    html: element.outerHTML.slice(0, 120),
    ring: isFrame ? 2 : ring,
    is_on_top: top !== null && (element.contains(top) || top.contains(element)),
    is_new: isNew,
  };
}"""


def _next_focus(page: Page) -> dict[str, Any] | None:
    """The element that the next Tab leads to; None where it was there before. After the last
    element no element has the focus for one Tab.
    """
    for _ in range(2):
        page.keyboard.press("Tab")
        focus: dict[str, Any] | None = page.evaluate(FOCUS)
        if focus is not None:
            return focus if focus["is_new"] else None
    return None


def first_view_bytes(page: Page, path: str) -> int:
    """The bytes of bodies and headers that come over the wire for the first view of this path, in a
    window that has no file in its cache yet.
    """
    requests: list[Request] = []

    def note(request: Request) -> None:
        requests.append(request)

    page.on("request", note)
    page.goto(path, wait_until="networkidle")
    page.remove_listener("request", note)
    sizes = [request.sizes() for request in requests]
    return sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes)
