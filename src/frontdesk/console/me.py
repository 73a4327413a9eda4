"""What users change of their own: name and time zone, password, second factor, sessions."""

from collections.abc import Mapping

from markupsafe import Markup

from frontdesk.console import frame
from frontdesk.console import sign_in_pages as pages
from frontdesk.console.door import Pages, Who
from frontdesk.console.rules import rules_text
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Invalid
from frontdesk.users import directory, factors, sessions
from frontdesk.users.model import Session
from frontdesk.web.response import Response

PAGES = Pages()

ME = "/console/me"
FACTOR = "/console/me/factor"


@PAGES.get(ME, for_=Who.USER)
async def show_me(visit: Visit) -> Response:
    """Show the user's own settings and sessions."""
    return await _page(visit)


async def _page(
    visit: Visit, *, message: str = "", typed: Mapping[str, str] | None = None, status: int = 200
) -> Response:
    user_id = visit.user.id

    def read(tx: Tx) -> tuple[list[Session], int]:
        own = sessions.list_sessions(tx, user_id, now=visit.now)
        return own, factors.count_recovery_codes(tx, user_id)

    own, codes_left = await visit.app.ask(read)
    return frame.show(
        visit,
        "You",
        "me.html",
        status=status,
        sessions=own,
        codes_left=codes_left,
        message=message,
        typed=typed or {"name": visit.user.name, "time_zone": visit.user.time_zone or ""},
    )


@PAGES.post(ME, for_=Who.USER)
async def change_me(visit: Visit) -> Response:
    """Change one's own name and time zone."""
    user = visit.user
    requester = visit.requester
    name = visit.form.text("name")
    zone = visit.form.text("time_zone") or None
    try:
        await visit.app.write(
            lambda tx: directory.change_own(tx, user, requester, name=name, time_zone=zone)
        )
    except Invalid as error:
        typed = {"name": name, "time_zone": zone or ""}
        return await _page(visit, message=rules_text(error), typed=typed, status=422)
    return frame.go_to(ME)


@PAGES.post("/console/me/password", for_=Who.USER)
async def change_password(visit: Visit) -> Response:
    """Change one's own password. The other sessions end."""
    secret = visit.secret or ""
    present = visit.form.password("present")
    new = visit.form.password("new")
    try:
        signed_in = await visit.app.sign_in_thread(
            lambda: sessions.change_password(
                visit.app.db, visit.visitor, session=secret, present=present, new=new
            )
        )
    except Invalid as error:
        return await _page(visit, message=rules_text(error), status=422)
    if signed_in is None:
        return await _page(visit, message="The present password is not right.", status=422)
    return frame.go_to(ME, *pages.session_cookies(visit, signed_in))


@PAGES.post("/console/me/sessions/{session_id}/end", for_=Who.USER)
async def end_session(visit: Visit) -> Response:
    """End a session of one's own."""
    user_id = visit.user.id
    session_id = visit.id_of("session_id", of="address")
    requester = visit.requester
    await visit.app.write(lambda tx: sessions.end_session(tx, user_id, session_id, requester))
    return frame.go_to(ME)


@PAGES.post("/console/me/recovery-codes", for_=Who.USER)
async def renew_recovery_codes(visit: Visit) -> Response:
    """Ten new recovery codes, in this answer only."""
    session = visit.own_session
    requester = visit.requester
    codes = await visit.app.write(lambda tx: sessions.renew_recovery_codes(tx, session, requester))
    return pages.recovery_codes_page(visit, codes, after=ME)


@PAGES.post("/console/me/factor/begin", for_=Who.USER)
async def begin_factor(visit: Visit) -> Response:
    """Begin to set up another second factor."""
    session = visit.own_session
    sessions.refuse_unless_fresh(session, now=visit.now)
    requester = visit.requester
    await visit.app.write(lambda tx: factors.offer_factor(tx, session, requester))
    return frame.go_to(FACTOR)


@PAGES.get(FACTOR, for_=Who.USER)
async def show_factor(visit: Visit) -> Response:
    """Show the second factor that is being set up."""
    return await _factor_page(visit)


@PAGES.post(FACTOR, for_=Who.USER)
async def change_factor(visit: Visit) -> Response:
    """Confirm another second factor by its first code."""
    secret = visit.secret or ""
    code = visit.form.text("code")
    key = pages.factor_key(visit)
    signed_in = await visit.app.sign_in_thread(
        lambda: sessions.change_factor(visit.app.db, visit.visitor, key, session=secret, code=code)
    )
    if signed_in is None:
        return await _factor_page(visit, message="This code is not right.", status=422)
    headers = pages.take_session(visit, signed_in)
    return pages.recovery_codes_page(visit, signed_in.recovery_codes, *headers, after=ME)


async def _factor_page(visit: Visit, *, message: str = "", status: int = 200) -> Response:
    user_id = visit.user.id
    key = pages.factor_key(visit)
    offer = await visit.app.ask(lambda tx: factors.offered_factor(tx, key, user_id))
    return frame.show(
        visit,
        "Another second factor",
        "factor.html",
        status=status,
        offer=offer,
        qr=Markup(offer.qr_svg),  # noqa: S704 # made by segno of our own text
        message=message,
    )
