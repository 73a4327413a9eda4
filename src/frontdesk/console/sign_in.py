"""Signing in and out: e-mail and password, the second factor, its set-up, links of invitations and
of resets. What each step means is written in `users.sign_in` and `users.links`.
"""

from contextlib import suppress

from markupsafe import Markup

from frontdesk.console import cookies, frame
from frontdesk.console import sign_in_pages as pages
from frontdesk.console.door import Pages, Who
from frontdesk.console.rules import rules_text
from frontdesk.console.times import try_again_text
from frontdesk.console.visit import Visit
from frontdesk.errors import Conflict, Invalid, NotFound, RateLimited
from frontdesk.users import factors, links, sessions, sign_in
from frontdesk.users.model import AttemptBegun, SignedIn, SignInAttempt, SignInStep
from frontdesk.web.response import Header, Response

PAGES = Pages()

_WRONG_PAIR = "This e-mail and password do not belong together."
_WRONG_CODE = "This code is not right, or it was used before. Take the next one."
_ENDED = "The sign-in took too long, or had too many wrong codes. Begin again."
# Not the cookies: that of the browser lets the user in during an attack on the user's password.
_CLEAR: Header = (b"clear-site-data", b'"cache", "storage"')


@PAGES.get(pages.SIGN_IN, for_=Who.ANYONE)
async def show_sign_in(visit: Visit) -> Response:
    """Show the first step."""
    return pages.sign_in_page(visit)


@PAGES.post(pages.SIGN_IN, for_=Who.ANYONE)
async def take_password(visit: Visit) -> Response:
    """Check e-mail and password; go on to the second factor."""
    carried = pages.carried_by(visit)
    email = visit.form.text("email")
    password = visit.form.password("password")
    try:
        found = await visit.app.sign_in_thread(
            lambda: sign_in.check_password(
                visit.app.db, visit.visitor, email=email, password=password
            )
        )
    except RateLimited as error:
        message = try_again_text(error)
        return pages.sign_in_page(visit, carried=carried, message=message, email=email, status=429)
    if found is None:
        return pages.sign_in_page(
            visit, carried=carried, message=_WRONG_PAIR, email=email, status=401
        )
    if isinstance(found, SignedIn):
        return await _welcome(visit, found, carried)
    return _second_step(visit, found, carried)


def _second_step(
    visit: Visit, begun: AttemptBegun, carried: pages.Carried | None = None
) -> Response:
    """Go on to the second factor. A carried form goes on in the answer itself: no address may have
    its values.
    """
    cookie = cookies.set_cookie(visit.app.config, cookies.ATTEMPT, begun.secret)
    if begun.attempt.step is SignInStep.SET_UP:
        return frame.go_to(pages.with_next(pages.SET_UP, pages.path_after(visit)), cookie)
    if carried is None:
        return frame.go_to(pages.with_next(pages.CODE, pages.path_after(visit)), cookie)
    response = pages.code_page(visit, carried=carried)
    response.headers += (cookie,)
    return response


async def _welcome(visit: Visit, signed_in: SignedIn, carried: pages.Carried | None) -> Response:
    """Give the browser its session, in place of the one that it may have had. The same user finds the
    form that the ended session had sent.
    """
    await _end_former(visit)
    if carried is not None and carried.user_id == str(signed_in.session.user.id):
        return pages.resume_page(visit, carried, *pages.take_session(visit, signed_in))
    return frame.go_to(pages.path_after(visit), *pages.session_cookies(visit, signed_in))


async def _end_former(visit: Visit) -> None:
    """End the session of this browser that the sign-in takes the place of."""
    app = visit.app
    secret = cookies.read_cookie(app.config, visit.request, cookies.SESSION)
    if secret is None:
        return
    former = await app.read_in_thread(lambda: sessions.session_of(app.db, secret, now=visit.now))
    if former is None:
        return
    requester = visit.requester._replace(actor=former.user.actor)
    with suppress(NotFound):
        await app.write(lambda tx: sessions.end_session(tx, former.user.id, former.id, requester))


@PAGES.get(pages.CODE, for_=Who.ANYONE)
async def show_code(visit: Visit) -> Response:
    """Ask for the second factor."""
    attempt = await _attempt(visit)
    if attempt is None:
        return frame.go_to(pages.with_next(pages.SIGN_IN, pages.path_after(visit)))
    return pages.code_page(visit)


@PAGES.post(pages.CODE, for_=Who.ANYONE)
async def take_code(visit: Visit) -> Response:
    """Check a code of the app, or a recovery code; begin the session."""
    carried = pages.carried_by(visit)
    secret = _attempt_secret(visit)
    code = visit.form.text("code")
    try:
        signed_in = await visit.app.sign_in_thread(
            lambda: sign_in.check_code(
                visit.app.db, visit.visitor, pages.factor_key(visit), attempt=secret, code=code
            )
        )
    except NotFound:
        return pages.sign_in_page(visit, carried=carried, message=_ENDED, status=401)
    if signed_in is not None:
        return await _welcome(visit, signed_in, carried)
    if await _attempt(visit) is None:
        return pages.sign_in_page(visit, carried=carried, message=_ENDED, status=401)
    return pages.code_page(visit, carried=carried, message=_WRONG_CODE, status=401)


@PAGES.get(pages.SET_UP, for_=Who.ANYONE)
async def show_set_up(visit: Visit) -> Response:
    """Show the second factor that the user sets up."""
    return await _set_up_page(visit)


@PAGES.post(pages.SET_UP, for_=Who.ANYONE)
async def take_set_up(visit: Visit) -> Response:
    """Confirm the second factor by its first code. The recovery codes are in this answer only."""
    secret = _attempt_secret(visit)
    code = visit.form.text("code")
    try:
        signed_in = await visit.app.sign_in_thread(
            lambda: sign_in.set_up_factor(
                visit.app.db, visit.visitor, pages.factor_key(visit), attempt=secret, code=code
            )
        )
    except NotFound:
        return pages.sign_in_page(visit, message=_ENDED, status=401)
    if signed_in is None:
        return await _set_up_page(visit, message=_WRONG_CODE, status=401)
    headers = pages.take_session(visit, signed_in)
    codes = signed_in.recovery_codes
    return pages.recovery_codes_page(visit, codes, *headers, after=pages.path_after(visit))


async def _set_up_page(visit: Visit, *, message: str = "", status: int = 200) -> Response:
    attempt = await _attempt(visit)
    if attempt is None or attempt.step is not SignInStep.SET_UP:
        return frame.go_to(pages.SIGN_IN)
    key = pages.factor_key(visit)
    offer = await visit.app.ask(lambda tx: factors.offered_factor(tx, key, attempt.user.id))
    return frame.show(
        visit,
        "Set up your second factor",
        "set_up.html",
        status=status,
        offer=offer,
        qr=Markup(offer.qr_svg),  # noqa: S704 # made by segno of our own text
        attempt=attempt,
        message=message,
        after=pages.path_after(visit),
    )


async def _attempt(visit: Visit) -> SignInAttempt | None:
    secret = _attempt_secret(visit)
    return await visit.app.ask(lambda tx: sign_in.attempt_of(tx, secret, now=visit.now))


def _attempt_secret(visit: Visit) -> str:
    return cookies.read_cookie(visit.app.config, visit.request, cookies.ATTEMPT) or ""


@PAGES.get("/console/invitation/{secret}", for_=Who.ANYONE)
async def show_invitation(visit: Visit) -> Response:
    """Ask the holder of an invitation's link for a name and a password."""
    return await _invitation_page(visit)


@PAGES.post("/console/invitation/{secret}", for_=Who.ANYONE)
async def take_invitation(visit: Visit) -> Response:
    """Make the invited user; go on to the second factor."""
    secret = visit.request.path_parameters["secret"]
    name = visit.form.text("name")
    password = visit.form.password("password")
    try:
        begun = await visit.app.sign_in_thread(
            lambda: links.accept_invitation(
                visit.app.db, visit.visitor, secret=secret, name=name, password=password
            )
        )
    except Invalid as error:
        return await _invitation_page(visit, message=rules_text(error), name=name, status=422)
    except Conflict as error:
        return await _invitation_page(visit, message=error.detail, name=name, status=409)
    except NotFound as error:
        return pages.sign_in_page(visit, message=error.detail, status=404)
    return _second_step(visit, begun)


async def _invitation_page(
    visit: Visit, *, message: str = "", name: str = "", status: int = 200
) -> Response:
    secret = visit.request.path_parameters["secret"]
    try:
        invitation = await visit.app.ask(lambda tx: links.invitation_of(tx, secret, now=visit.now))
    except NotFound as error:
        return pages.sign_in_page(visit, message=error.detail, status=404)
    headers = pages.use_form_cookie(visit)
    return frame.show(
        visit,
        "Your invitation",
        "invitation.html",
        status=status,
        headers=headers,
        invitation=invitation,
        message=message,
        name=name,
    )


@PAGES.get("/console/reset/{secret}", for_=Who.ANYONE)
async def show_reset(visit: Visit) -> Response:
    """Ask the holder of a reset link for another password."""
    return await _reset_page(visit)


@PAGES.post("/console/reset/{secret}", for_=Who.ANYONE)
async def take_reset(visit: Visit) -> Response:
    """Change the password; go on to the sign-in."""
    secret = visit.request.path_parameters["secret"]
    password = visit.form.password("password")
    try:
        user = await visit.app.sign_in_thread(
            lambda: links.reset_password(
                visit.app.db, visit.visitor, secret=secret, password=password
            )
        )
    except Invalid as error:
        return await _reset_page(visit, message=rules_text(error), status=422)
    except NotFound as error:
        return pages.sign_in_page(visit, message=error.detail, status=404)
    return pages.sign_in_page(
        visit, message="The password is changed. Sign in with it.", email=user.email
    )


async def _reset_page(visit: Visit, *, message: str = "", status: int = 200) -> Response:
    secret = visit.request.path_parameters["secret"]
    try:
        user = await visit.app.ask(lambda tx: links.user_of_reset(tx, secret, now=visit.now))
    except NotFound as error:
        return pages.sign_in_page(visit, message=error.detail, status=404)
    headers = pages.use_form_cookie(visit)
    return frame.show(
        visit,
        "Choose a new password",
        "reset.html",
        status=status,
        headers=headers,
        email=user.email,
        message=message,
    )


@PAGES.get(pages.CONFIRM, for_=Who.USER)
async def show_confirm(visit: Visit) -> Response:
    """Ask for a fresh second factor."""
    return _confirm_page(visit)


@PAGES.post(pages.CONFIRM, for_=Who.USER)
async def take_confirm(visit: Visit) -> Response:
    """Check the code; the session gets another secret and counts as fresh for 10 minutes."""
    secret = visit.secret or ""
    code = visit.form.text("code")
    key = pages.factor_key(visit)
    signed_in = await visit.app.sign_in_thread(
        lambda: sessions.confirm(visit.app.db, visit.visitor, key, session=secret, code=code)
    )
    if signed_in is None:
        return _confirm_page(visit, message=_WRONG_CODE, status=401)
    return frame.go_to(pages.path_after(visit), *pages.session_cookies(visit, signed_in))


def _confirm_page(visit: Visit, *, message: str = "", status: int = 200) -> Response:
    return frame.show(
        visit,
        "Confirm that it is you",
        "confirm.html",
        status=status,
        message=message,
        after=pages.path_after(visit),
    )


@PAGES.post("/console/sign-out", for_=Who.USER)
async def sign_out(visit: Visit) -> Response:
    """End the session; the browser forgets its pages."""
    session = visit.own_session
    requester = visit.requester
    with suppress(NotFound):  # a second press of the button
        await visit.app.write(
            lambda tx: sessions.end_session(tx, session.user.id, session.id, requester)
        )
    if visit.secret is not None:
        visit.app.live_sessions.forget(visit.secret)
    cookie = cookies.drop_cookie(visit.app.config, cookies.SESSION)
    return frame.go_to(pages.SIGN_IN, cookie, _CLEAR)


@PAGES.post("/console/stay", for_=Who.USER)
async def stay(visit: Visit) -> Response:
    """Keep the session: the request itself is a use of it."""
    return frame.go_to(pages.path_after(visit))
