"""The pages that the links of an invitation lead to. The token in the link is the only proof they
need.

A GET changes nothing. An unsubscribe page looks the same whether its token was ever issued or not.
"""

from markupsafe import Markup

from frontdesk import audit
from frontdesk.app import App
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.interface.operations import Answer, Content, Group
from frontdesk.interface.parameters import LOCATION
from frontdesk.invitations import suppress
from frontdesk.invitations.message import find_link_target, registration_link
from frontdesk.invitations.model import SuppressionReason
from frontdesk.web.page import PRIVATE, page_response
from frontdesk.web.request import Request
from frontdesk.web.response import Response

GROUP = Group("Invitations", "Pages for invited people. They are not in the OpenAPI document.")

_PAGE = Content(("text/html",))
_ASK = Markup(
    "<h1>Get no more invitations?</h1>\n"
    "<p>The sender of the invitation will send nothing more to your address.</p>\n"
    '<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click">'
    '<button type="submit">Send me nothing more</button></form>'
)
_DONE = Markup("<h1>You will get no more invitations</h1>\n<p>You can close this page.</p>")
_NOT_YET = Markup(
    "<h1>You are invited to {}</h1>\n"
    "<p>Registration has not been opened yet. Please try this link again later.</p>"
)
_NOTHING = Markup(
    "<h1>This link leads nowhere</h1>\n<p>Please open the link in your invitation again, whole.</p>"
)


@GROUP.get(
    "/register/{token}",
    answers={
        200: Answer("The account has no page yet.", _PAGE),
        303: Answer("The account's own page.", headers=[LOCATION]),
        404: Answer("The link leads nowhere.", _PAGE),
    },
)
async def register(app: App, request: Request) -> Response:
    """Go on to register.

    Leads to the account's own page, for mails that were written before it had one.
    """
    token = request.path_parameters["token"]
    target = await app.ask(lambda tx: find_link_target(tx, "registration", token))
    if target is None:
        return page_response("This link leads nowhere", _NOTHING, status=404)
    if target.registration_url is None:
        return page_response("You are invited", _NOT_YET.format(target.plan_name))
    link = registration_link(
        base_url=app.config.base_url, registration_url=target.registration_url, token=token
    )
    return Response(303, b"", ((b"location", link.encode()), *PRIVATE))


@GROUP.get("/unsubscribe/{token}", answers={200: Answer("A page with a button.", _PAGE)})
async def ask_to_unsubscribe(_app: App, _request: Request) -> Response:
    """Ask whether to unsubscribe.

    The page has a button, so that programs that follow every link change nothing.
    """
    return page_response("Get no more invitations?", _ASK)


@GROUP.post("/unsubscribe/{token}", answers={200: Answer("The address is on the list.", _PAGE)})
async def unsubscribe(app: App, request: Request) -> Response:
    """Unsubscribe.

    By the button, or by one click in a mail program (RFC 8058).
    """
    await request.body()
    token = request.path_parameters["token"]
    requester = Requester("unsubscribe-link", request.request_id, app.clock())

    def record(tx: Tx) -> None:
        target = find_link_target(tx, "unsubscribe", token)
        if target is None:
            return
        reason = SuppressionReason.UNSUBSCRIBE
        account_id = target.account_id
        if suppress(tx, target.address, reason, now=requester.now, account_id=account_id):
            audit.record_action(
                tx, requester, "suppression.added", account_id, target.invitation_id
            )

    if await app.ask(lambda tx: find_link_target(tx, "unsubscribe", token)) is not None:
        await app.write(record)  # a guessed token must not take a writer
    return page_response("You will get no more invitations", _DONE)
