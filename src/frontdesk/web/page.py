"""Pages for people: one layout, no script, and a Content-Security-Policy under which a page loads
nothing.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from frontdesk.web.response import NO_STORE, Header, Response

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def page_template(package: str, name: str) -> "Template":
    """The template `name` in the folder `pages` of the package; its values are escaped."""
    # a process that shows no page does without its 2 MiB
    from jinja2 import Environment, StrictUndefined

    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    ).from_string(_read(package, name))


def _read(package: str, name: str) -> str:
    return files(package).joinpath("pages", name).read_text(encoding="utf-8")


# Custom properties of colours, spaces and letters, which the documentation and the console share.
TOKENS = _read("frontdesk.web", "tokens.css")

_style = TOKENS + _read("frontdesk.web", "page.css")
_style_hash = base64.b64encode(hashlib.sha256(_style.encode()).digest()).decode()

_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_style_hash}'; frame-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

# The address of a page may be a secret: no cache, index or Referer may keep it.
PRIVATE: tuple[Header, ...] = (
    NO_STORE,
    (b"referrer-policy", b"no-referrer"),
    (b"x-robots-tag", b"noindex"),
)


def page_response(
    title: str, content: Markup, *, status: int = 200, wide: bool = False
) -> Response:
    """A page with this title. `content` is markup with its values escaped, such as a
    `page_template` renders.
    """
    page = page_template("frontdesk.web", "page.html")
    body = page.render(title=title, content=content, style=Markup(_style), wide=wide)  # noqa: S704 # our own text
    headers = ((b"content-security-policy", _POLICY.encode()), *PRIVATE)
    return Response(status, body.encode(), headers, b"text/html; charset=utf-8")
