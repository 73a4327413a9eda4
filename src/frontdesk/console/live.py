"""Pages with a region that the script fetches anew every 5 seconds: 304 while nothing has changed."""

from hashlib import sha256
from typing import Any

from markupsafe import Markup

from frontdesk.console import frame
from frontdesk.console.visit import Visit
from frontdesk.web.page import page_template
from frontdesk.web.response import NO_STORE, Header, Response

_NO_TAG = 'data-tag=""'


# The time of the numbers, which the script shows also where they are the same as before.
AS_OF = b"x-frontdesk-as-of"


def show_live(
    visit: Visit, title: str, template: str, *, status: int = 200, as_of: str = "", **values: Any
) -> Response:
    """A page as `frame.show` makes it, with an ETag of its content. The template writes
    `data-tag=""` at its region once, for the script; the time of the page, `times.clock(visit.now)`
    or `as_of` with "now/as_of.html", is no change.
    """
    times = frame.times_of(visit)
    content = page_template(frame.PACKAGE, template).render(
        visit=visit, times=times, title=title, as_of=as_of, **values
    )
    lasting = content.replace(str(times.clock(visit.now)), "")
    if as_of:
        lasting = lasting.replace(f"<span data-as-of>{as_of}</span>", "")
    tag = sha256(lasting.encode()).hexdigest()[:32]
    quoted = f'"{tag}"'.encode()
    headers: tuple[Header, ...] = ((b"etag", quoted),)
    if as_of:
        headers = (*headers, (AS_OF, as_of.encode()))
    if status == 200 and visit.request.header(b"if-none-match") == quoted.decode():
        return Response(304, b"", (*headers, NO_STORE))
    content = content.replace(_NO_TAG, f"data-tag='{quoted.decode()}'", 1)
    return frame.page(
        visit,
        title,
        Markup(content),  # noqa: S704 # rendered with autoescape
        status=status,
        headers=headers,
    )
