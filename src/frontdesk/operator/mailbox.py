"""The sandbox's mailbox as pages: caught mails as their readers would see them. Nothing in a mail
can act here.
"""

import re
from urllib.parse import urlsplit

from markupsafe import Markup

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.config import Environment, is_this_machine
from frontdesk.errors import Forbidden, NotFound
from frontdesk.interface.operations import Answer, Content, Group
from frontdesk.mailbox import get_message, list_messages
from frontdesk.mailbox.model import CaughtMessage, decode_message
from frontdesk.text import wire_time
from frontdesk.web.page import PRIVATE, page_response, page_template
from frontdesk.web.request import Request, read_parameters
from frontdesk.web.response import Response

# The handlers look at tokens themselves: a browser on a developer's own machine needs none.
GROUP = Group("Mailbox", "Mails that the sandbox has caught.")

_PAGE = Content(("text/html",))
_REFUSED = (Kind.UNAUTHORIZED, Kind.FORBIDDEN, Kind.NOT_FOUND)
PAGE_SIZE = 50
_ID = re.compile(r"[0-9]{1,18}")

# The frame with the mail's own HTML shows text and colours: no script, no form, no picture from
# anywhere.
_FRAME_POLICY = (
    b"default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'self'"
)


@GROUP.get(
    "/sandbox/mailbox",
    answers={200: Answer("A page of mails.", _PAGE)},
    problems=_REFUSED,
    faults=[codes.faults.REPEATED],
)
async def list_caught_messages(app: App, request: Request) -> Response:
    """List the newest caught mails.

    With `?before=` those before an id.
    """
    await _admit(app, request)
    text = read_parameters(request, {"before": {"type": "string"}}, strict=False).get("before", "")
    before = int(text) if _ID.fullmatch(text) else None
    messages = await app.ask(lambda tx: list_messages(tx, before_id=before, limit=PAGE_SIZE))
    older = messages[-1].id if len(messages) == PAGE_SIZE else None
    return _page("Caught mail", "mailbox.html", messages=messages, older=older, older_than=before)


@GROUP.get(
    "/sandbox/mailbox/{message_id}", answers={200: Answer("The mail.", _PAGE)}, problems=_REFUSED
)
async def show_caught_message(app: App, request: Request) -> Response:
    """Show a caught mail."""
    message = await _message(app, request)
    return _page(
        "A caught mail", "message.html", message=message, decoded=decode_message(message.content)
    )


@GROUP.get(
    "/sandbox/mailbox/{message_id}/html",
    answers={200: Answer("The part.", _PAGE)},
    problems=_REFUSED,
)
async def show_caught_html(app: App, request: Request) -> Response:
    """Show the HTML part of a caught mail, for the frame."""
    part = decode_message((await _message(app, request)).content).html
    if part is None:
        raise NotFound("part", "This message has no HTML part.")
    headers = ((b"content-security-policy", _FRAME_POLICY), *PRIVATE)
    return Response(200, part.encode(), headers, b"text/html; charset=utf-8")


def _page(title: str, template: str, **values: object) -> Response:
    content = page_template("frontdesk.operator", template).render(wire_time=wire_time, **values)
    return page_response(title, Markup(content), wide=True)  # noqa: S704 # rendered with autoescape


async def _message(app: App, request: Request) -> CaughtMessage:
    """The message in the path, for a reader with the right to see it."""
    await _admit(app, request)
    id_ = request.path_id("message_id", of="message")
    return await app.ask(lambda tx: get_message(tx, id_))


async def _admit(app: App, request: Request) -> None:
    """Admit an operator's token, or a browser on the machine itself; only a sandbox has the page.

    Raises NotFound, Unauthorized, Forbidden.
    """
    if app.config.environment is not Environment.SANDBOX:
        raise NotFound("address", "There is nothing at this address.")
    if request.header(b"authorization") is None and _is_local(app, request):
        return
    caller = await app.tokens.check(request.bearer_token())
    request.known_caller = caller
    if Scope.OPERATOR not in caller.scopes:
        raise Forbidden(Scope.OPERATOR)


def _is_local(app: App, request: Request) -> bool:
    """Whether the installation and the browser are both on the developer's own machine.

    The connection alone proves nothing: a proxy in front, or a foreign page's name that points at
    127.0.0.1, connects from there as well. So the base URL and the requested Host must be this
    machine's too, and no proxy may have forwarded.
    """
    host = urlsplit("//" + (request.header(b"host") or "")).hostname
    forwarded = any(request.header(name) for name in (b"forwarded", b"x-forwarded-for"))
    names = (request.address(()), host, urlsplit(app.config.base_url).hostname)
    return not forwarded and all(name is not None and is_this_machine(name) for name in names)
