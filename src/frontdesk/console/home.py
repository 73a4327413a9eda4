"""The entrance, the accounts of users of the installation, the page's script, and every address that
is nothing.
"""

from frontdesk import access
from frontdesk.console import frame
from frontdesk.console.assets import ASSETS
from frontdesk.console.door import Pages, Who
from frontdesk.console.sign_in_pages import own_path
from frontdesk.console.visit import Visit
from frontdesk.errors import NotFound
from frontdesk.reach import EVERY
from frontdesk.users.model import Right
from frontdesk.web.response import Response

PAGES = Pages()

_KEPT = (b"cache-control", b"public, max-age=86400")  # the script's name changes with it


@PAGES.get("/console", for_=Who.USER)
async def enter(visit: Visit) -> Response:
    """Lead to the first place of the user."""
    user = visit.user
    if user.account_id is not None:
        if user.may(Right.FILES_READ, user.account_id):
            return frame.go_to(f"/console/accounts/{user.account_id}/files")
        return frame.go_to("/console/me")
    if user.may(Right.SYSTEM, None):
        return frame.go_to("/console/system")
    if user.may(Right.TRAIL, None):
        return frame.go_to("/console/trail")
    return frame.go_to("/console/accounts")


@PAGES.get("/console/accounts", for_=Who.USER)
async def list_accounts(visit: Visit) -> Response:
    """List the accounts that the user reaches."""
    user = visit.user
    every = await visit.app.ask(lambda tx: access.list_accounts(tx, EVERY))
    accounts = [each for each in every if user.reaches(each.id)]
    # An auditor may not see files.
    places = {
        each.id: "files" if user.may(Right.FILES_READ, each.id) else "trail" for each in accounts
    }
    return frame.show(visit, "Accounts", "accounts.html", accounts=accounts, places=places)


@PAGES.get("/console/assets/{name}", for_=Who.ANYONE)
async def show_asset(visit: Visit) -> Response:
    """The script or the icon."""
    found = ASSETS.get(visit.request.path_parameters["name"])
    if found is None:
        raise NotFound("address")
    content, content_type = found
    return Response(200, content, (_KEPT,), content_type)


@PAGES.get("/console/{rest:path}", for_=Who.USER)
async def show_nothing(visit: Visit) -> Response:
    """Every other address below /console: shut before the sign-in, nothing after it. One with a
    slash at its end leads to that without.
    """
    path = visit.request.path
    if path.endswith("/"):
        return frame.go_to(own_path(path.rstrip("/")))
    raise NotFound("address")


@PAGES.post("/console/{rest:path}", for_=Who.USER)
async def take_nothing(_visit: Visit) -> Response:
    """As `show_nothing`, for a form."""
    raise NotFound("address")
