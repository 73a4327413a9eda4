"""Declares pages beside their handlers, and takes each request through the same steps: the session,
the right, the proof that a form is ours, the handler, and errors as pages.

A page names who may see it. Whatever is not declared does not exist: every other address below
/console is "not found".
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial

from frontdesk.access.accounts import get_account
from frontdesk.access.model import WORKING
from frontdesk.app import App
from frontdesk.console import cookies, frame
from frontdesk.console.errors import NoRight, SignInNeeded, error_page
from frontdesk.console.sign_in_pages import ask_to_confirm, ask_to_sign_in, own_path
from frontdesk.console.visit import TOKEN_FIELD, Form, Visit, read_form, sends_file
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.users.model import NotFresh, Right, Session
from frontdesk.users.sessions import session_of
from frontdesk.web.endpoint import Endpoint
from frontdesk.web.multipart import FormWithFile
from frontdesk.web.request import Request
from frontdesk.web.response import HttpError, Response

Handler = Callable[[Visit], Awaitable[Response]]
Declare = Callable[[Handler], Handler]

MIB = 1024 * 1024
REFRESH_HEADER = b"x-frontdesk-refresh"  # the script's timer sends it: no use of the session


class Who(Enum):
    """Who may see a page that needs no right."""

    ANYONE = "before the sign-in, too"
    USER = "every signed-in user"


class Pages:
    """The pages of one place of the console."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []

    def get(self, path: str, *, for_: Right | Who) -> Declare:
        """Declare the handler of GET. It changes nothing."""
        return self._declare("GET", path, for_)

    def post(self, path: str, *, for_: Right | Who) -> Declare:
        """Declare the handler of a form."""
        return self._declare("POST", path, for_)

    def post_file(self, path: str, *, for_: Right) -> Declare:
        """Declare the handler of a form whose last field is a file. The checks are those of any form,
        and are done before the file is looked at: `visit.upload` gives it to the handler.
        """
        return self._declare("POST", path, for_, takes_file=True)

    def _declare(
        self, method: str, path: str, for_: Right | Who, *, takes_file: bool = False
    ) -> Declare:
        def declare(handler: Handler) -> Handler:
            serve = partial(_serve, handler, for_, takes_file=takes_file)
            self.endpoints.append(
                Endpoint(
                    method,
                    path,
                    serve,
                    scope=None,
                    serves_json=False,
                    is_bulk=takes_file,
                    show_error=show_error,
                )
            )
            return handler

        return declare


def pages_of_forms(declared: Sequence[Endpoint]) -> Iterator[Endpoint]:
    """For each address that takes a form only, a GET that leads to the page above it: an answer of a
    form stands at that address, and people reload it or go to it again.
    """
    with_page = {each.path for each in declared if each.method == "GET"}
    for each in declared:
        if each.path not in with_page:
            lead = partial(_serve, _lead_up, Who.USER)
            yield replace(each, method="GET", handler=lead, is_bulk=False)


async def _lead_up(visit: Visit) -> Response:
    """Lead to the address without its last part."""
    return frame.go_to(own_path(visit.request.path.rpartition("/")[0]))


async def _serve(
    handler: Handler, for_: Right | Who, app: App, request: Request, *, takes_file: bool = False
) -> Response:
    visit = Visit(app, request, app.clock())
    response = await _answer(visit, handler, for_, takes_file=takes_file)
    if visit.upload is not None:
        await visit.upload.skip_rest(is_signed_in=visit.session is not None)
    return response


async def _answer(
    visit: Visit, handler: Handler, for_: Right | Who, *, takes_file: bool
) -> Response:
    try:
        await _admit(visit, for_, takes_file=takes_file)
        return await handler(visit)
    except SignInNeeded:
        return ask_to_sign_in(visit)
    except NotFresh:
        return ask_to_confirm(visit)
    except (FrontdeskError, HttpError) as error:
        return error_page(visit, error)


def show_error(app: App, request: Request, error: Exception) -> Response:
    """The page of an error that no handler has met."""
    return error_page(Visit(app, request, app.clock()), error)


async def _admit(visit: Visit, for_: Right | Who, *, takes_file: bool) -> None:
    """Raises SignInNeeded, NotFound for an account that the user does not reach, NoRight,
    ForeignForm, Malformed, HttpError.
    """
    request = visit.request
    is_form = request.method == "POST"
    if is_form:
        cookies.refuse_foreign_form(visit.app.config, request)
    if for_ is Who.ANYONE:
        visit.secret = cookies.read_cookie(visit.app.config, request, cookies.FORM)
    else:
        await _find_session(visit)
    if is_form:
        visit.form = await _read_fields(visit, takes_file=takes_file)
        if visit.session is None and for_ is not Who.ANYONE:
            raise SignInNeeded
        cookies.refuse_wrong_token(visit.secret, visit.form.fields.pop(TOKEN_FIELD, ""))
    elif visit.session is None and for_ is not Who.ANYONE:
        raise SignInNeeded
    if visit.session is not None:
        await _check_right(visit, visit.session, for_)


async def _read_fields(visit: Visit, *, takes_file: bool) -> Form:
    """The form; of one with a file the fields before the file. Raises Malformed, HttpError."""
    request = visit.request
    if not (takes_file and sends_file(request)):
        return await read_form(request)
    visit.upload = FormWithFile(request, largest_file=visit.app.config.file_limit_mib * MIB)
    return Form(await visit.upload.read_fields())


async def _find_session(visit: Visit) -> None:
    """Sets the session of the cookie, if it lives."""
    app = visit.app
    secret = cookies.read_cookie(app.config, visit.request, cookies.SESSION)
    if secret is None:
        return
    if visit.request.method == "GET" and visit.request.header(REFRESH_HEADER) is not None:
        visit.session = await app.live_session(secret)
    else:
        visit.session = await app.read_in_thread(lambda: session_of(app.db, secret, now=visit.now))
    visit.secret = secret


async def _check_right(visit: Visit, session: Session, for_: Right | Who) -> None:
    """Raises NotFound for an account beyond the user's reach, as for one that does not exist;
    NoRight.
    """
    user = session.user
    if "account_id" in visit.request.path_parameters:
        account_id = visit.request.path_id("account_id", of="account")
        if not user.reaches(account_id):
            raise NotFound("account")
        # Whose reach is every number. A refresh takes a part of a page that was shown before.
        if user.is_of_installation and visit.request.header(REFRESH_HEADER) is None:
            account = await visit.app.ask(lambda tx: get_account(tx, account_id))
            is_working = account.state in WORKING
            visit.account_text = account.name if is_working else f"{account.name} ({account.state})"
        visit.account_id = account_id
        if visit.request.method == "POST":  # pages that record a look refuse by themselves
            visit.app.refuse_used_up_trail(account_id)
    if isinstance(for_, Right) and not user.may(for_, visit.account_id):
        raise NoRight(for_)
