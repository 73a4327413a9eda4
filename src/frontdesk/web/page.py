"""Pages for people: one layout for those of the API, of the sandbox and of the console, with a
Content-Security-Policy under which a page loads nothing but our own script.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from frontdesk.text import count_text, visible
from frontdesk.web.response import NO_STORE, Header, Response

if TYPE_CHECKING:
    from jinja2 import Environment, Template

LONGEST_STATED = 60  # letters of a text of a customer
STATED_END = 16  # of a longer one, at its end: what a file's name says last is what it is
HTML = b"text/html; charset=utf-8"


@cache
def _templates(package: str) -> "Environment":
    """The templates in the folder `pages` of the package, which may import those of `web`."""
    # a process that shows no page does without its 2 MiB
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader(
            [PackageLoader(package, "pages"), PackageLoader("frontdesk.web", "pages")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["stated"] = stated
    made.filters["counted"] = count_text
    return made


def stated(text: str, most: int = LONGEST_STATED) -> Markup:
    """A text that a customer has chosen, such as a file's name or a plan's: isolated from the words
    around it, with visible characters only. Of one with more than `most` letters the beginning and
    the end are shown, and the whole as its title.
    """
    whole = visible(text)
    if len(whole) <= most:
        return Markup("<bdi>{}</bdi>").format(whole)
    begin = whole[: most - STATED_END - 1].rstrip()
    clipped = f"{begin}…{whole[-STATED_END:]}"
    return Markup('<bdi title="{}">{}</bdi>').format(whole, clipped)


def page_template(package: str, name: str) -> "Template":
    """The template `name` in the folder `pages` of the package; its values are escaped. It may
    import the macros of `parts.html` of `web`.
    """
    return _templates(package).get_template(name)


def read_page_part(name: str) -> str:
    """The text of a file in the folder `pages` of `web`."""
    return files("frontdesk.web").joinpath("pages", name).read_text(encoding="utf-8")


# Custom properties of colours, spaces and letters, which the documentation and the console share.
TOKENS = read_page_part("tokens.css")

_style = TOKENS + read_page_part("page.css")
_style_hash = base64.b64encode(hashlib.sha256(_style.encode()).digest()).decode()


def _policy(*, has_script: bool) -> bytes:
    """What a page may load: its own style, frames and forms of this origin; the script and what the
    script asks for only where there is one.
    """
    script = "script-src 'self'; connect-src 'self'; img-src 'self'; " if has_script else ""
    return (
        f"default-src 'none'; style-src 'sha256-{_style_hash}'; {script}frame-src 'self'; "
        "form-action 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    ).encode()


# The address of a page may be a secret: no cache, index or Referer may keep it.
PRIVATE: tuple[Header, ...] = (
    NO_STORE,
    (b"referrer-policy", b"no-referrer"),
    (b"x-robots-tag", b"noindex"),
)


class Frame(NamedTuple):
    """What stands around the content of a page: markup with its values escaped, the paths of
    the script and of the icon, and the headers of such pages.
    """

    markup: Markup
    script: str
    icon: str
    headers: tuple[Header, ...]


_NO_FRAME = Frame(Markup(), "", "", PRIVATE)


def page_response(
    title: str, content: Markup, *, status: int = 200, wide: bool = False, frame: Frame = _NO_FRAME
) -> Response:
    """A page with this title. `content` is markup with its values escaped, such as a
    `page_template` renders.
    """
    page = page_template("frontdesk.web", "page.html")
    body = page.render(
        title=title,
        content=content,
        style=Markup(_style),  # noqa: S704 # our own text
        wide=wide,
        frame=frame.markup,
        script=frame.script,
        icon=frame.icon,
    )
    policy = (b"content-security-policy", _policy(has_script=bool(frame.script)))
    return Response(status, body.encode(), (policy, *frame.headers), HTML)
