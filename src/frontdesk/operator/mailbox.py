"""The sandbox's mailbox as pages: what would have been sent, as its reader would see it. Nothing in a mail can act here."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from markupsafe import Markup

from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.clock import wire_time
from frontdesk.config import Environment
from frontdesk.errors import Forbidden, NotFound
from frontdesk.mailbox import decode_message, get_message, list_messages
from frontdesk.mailbox.model import CaughtMessage
from frontdesk.web.page import PRIVATE, page_response, page_template
from frontdesk.web.request import Request
from frontdesk.web.response import Response

PAGE_SIZE = 50
_ID = re.compile(r"[0-9]{1,18}")

# The mail's own HTML stands in a frame that may show text and colours: no script, no form, no picture from anywhere.
_FRAME_POLICY = (
    b"default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'self'"
)

_LIST = page_template("frontdesk.operator", "mailbox.html")

_ONE = page_template("frontdesk.operator", "message.html")


async def list_(app: App, request: Request) -> Response:
    """`GET /sandbox/mailbox`: the newest mails; `?before=` an id goes on from there."""
    await _admit(app, request)
    asked = request.query("before").get("before", "")
    before = int(asked) if _ID.fullmatch(asked) else None
    messages = await app.read_in_thread(
        lambda: app.db.ask(lambda tx: list_messages(tx, before_id=before, limit=PAGE_SIZE))
    )
    content = _LIST.render(
        messages=[(message, decode_message(message.content).subject) for message in messages],
        older=messages[-1].id if len(messages) == PAGE_SIZE else None,
        older_than=before,
        wire_time=wire_time,
    )
    return page_response("Caught mail", Markup(content), wide=True)  # noqa: S704 # rendered with autoescape


async def show(app: App, request: Request) -> Response:
    """`GET /sandbox/mailbox/:message_id`: one mail. Raises NotFound."""
    await _admit(app, request)
    message = await _message(app, request)
    reading = decode_message(message.content)
    content = _ONE.render(message=message, reading=reading, wire_time=wire_time)
    return page_response("A caught mail", Markup(content), wide=True)  # noqa: S704 # rendered with autoescape


async def html(app: App, request: Request) -> Response:
    """`GET /sandbox/mailbox/:message_id/html`: its HTML part, for the frame. Raises NotFound."""
    await _admit(app, request)
    found = decode_message((await _message(app, request)).content).html
    if found is None:
        raise NotFound("part", "This message has no HTML part.")
    headers = ((b"content-security-policy", _FRAME_POLICY), *PRIVATE)
    return Response(200, found.encode(), headers, b"text/html; charset=utf-8")


async def _message(app: App, request: Request) -> CaughtMessage:
    text = request.path_parameters["message_id"]
    if not _ID.fullmatch(text):
        raise NotFound("message")
    return await app.read_in_thread(lambda: app.db.ask(lambda tx: get_message(tx, int(text))))


async def _admit(app: App, request: Request) -> None:
    """Only a sandbox has the page. It takes an operator's token, or a browser on the machine itself.

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
    """Whether the installation is one on the developer's own machine, and the browser is there too.

    The connection alone proves nothing: a proxy in front, or a name that a foreign page points at 127.0.0.1, would come
    from there as well. So the base URL and the Host that was asked for must be this machine's, and nobody may have forwarded.
    """
    host = urlsplit("//" + (request.header(b"host") or "")).hostname
    forwarded = any(request.header(name) for name in (b"forwarded", b"x-forwarded-for"))
    names = (request.address(()), host, urlsplit(app.config.base_url).hostname)
    return not forwarded and all(_is_loopback(name) for name in names)


def _is_loopback(name: str | None) -> bool:
    if name == "localhost":
        return True
    try:
        return name is not None and ip_address(name).is_loopback
    except ValueError:
        return False
