"""The pages of a sign-in, and what they carry on: the address to go on to, and the fields of a form
that was sent when its session had ended.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from frontdesk.console import cookies, frame
from frontdesk.console.visit import TOKEN_FIELD, Visit
from frontdesk.users.factors import FactorKey
from frontdesk.users.model import SignedIn
from frontdesk.web.response import Header, Response

HOME = "/console"
SIGN_IN = "/console/sign-in"
CODE = "/console/sign-in/code"
SET_UP = "/console/sign-in/set-up"
CONFIRM = "/console/confirm"
OK = 200

USER_FIELD = "user"  # of each form: whose session it was made for
_CARRIED = "carried."  # before the name of a field that is carried on
# A segment of dots would lead out of /console.
_PATH = re.compile(
    r"/console(?:/(?!\.{1,2}(?:[/?]|$))[A-Za-z0-9._~-]+)*(?:\?[A-Za-z0-9._~=&%+-]*)?"
)
_LONGEST_PATH = 500
# Neither secrets, nor what says that the user has seen what the form would do.
_NEVER_CARRIED = {
    TOKEN_FIELD,
    "password",
    "present",
    "new",
    "code",
    "confirmed",
    "is_mailed",
    "again",
}
# Fields that nobody types: they name what the page has shown.
_OF_THE_PAGE = {"number", "version", "shown", "list", "session", "secret", "invitation", "do"}
CHECKED = "yes"  # the value of every check box
_MOST_CARRIED = 20_000  # characters


class Carried(NamedTuple):
    """The fields of a form that was sent without a session, where it was sent to, and the id of the
    user that it had been made for.
    """

    path: str
    user_id: str
    fields: Mapping[str, str]

    def as_fields(self) -> dict[str, str]:
        """The hidden fields by which the pages of the sign-in hand it on."""
        hidden = {_CARRIED + name: value for name, value in self.fields.items()}
        return {"carried_path": self.path, "carried_user": self.user_id, **hidden}


def carried_by(visit: Visit) -> Carried | None:
    """What the form of a sign-in page carries on; None if it carries nothing."""
    fields = visit.form.fields
    path = own_path(fields.get("carried_path", ""))
    if path == HOME:
        return None
    kept = {
        name.removeprefix(_CARRIED): value
        for name, value in fields.items()
        if name.startswith(_CARRIED)
    }
    return Carried(path, fields.get("carried_user", ""), kept)


def own_path(text: str) -> str:
    """The text if it is an address below /console, else the entrance: nothing leads elsewhere."""
    is_own = len(text) <= _LONGEST_PATH and _PATH.fullmatch(text) is not None
    return text if is_own else HOME


def path_after(visit: Visit) -> str:
    """Where a sign-in page goes on to: the field or parameter `next`."""
    return own_path(visit.form.fields.get("next") or visit.parameter("next"))


def with_next(path: str, after: str) -> str:
    """The address of a step with where to go on to."""
    return path if after == HOME else f"{path}?next={quote(after, safe='')}"


def factor_key(visit: Visit) -> FactorKey:
    config = visit.app.config
    return FactorKey(config.link_secret, f"frontdesk {config.host_name}".strip())


def ask_to_sign_in(visit: Visit) -> Response:
    """Answer a request without a session: lead a GET to the sign-in; show it in place of a form's
    answer, with the fields of the form.
    """
    request = visit.request
    if request.method != "POST":
        return frame.go_to(with_next(SIGN_IN, own_path(request.target)))
    return sign_in_page(
        visit,
        carried=_of_form(visit),
        message="Your session has ended. Nothing was done. Sign in to go on.",
        status=401,
    )


def _of_form(visit: Visit) -> Carried | None:
    """What the form of this request has to carry on; None where it is too much."""
    sent = visit.form.fields
    fields = {
        name: value
        for name, value in sent.items()
        if name not in _NEVER_CARRIED and name != USER_FIELD
    }
    if sum(map(len, fields.values())) > _MOST_CARRIED:
        return None
    return Carried(own_path(visit.request.path), sent.get(USER_FIELD, ""), fields)


def sign_in_page(
    visit: Visit,
    *,
    carried: Carried | None = None,
    message: str = "",
    email: str = "",
    status: int = 200,
) -> Response:
    """The first step: e-mail and password. `message` says why it is shown again."""
    headers = use_form_cookie(visit)
    return frame.show(
        visit,
        "Sign in",
        "sign_in.html",
        status=status,
        headers=headers,
        message=message,
        tone="good" if status == OK else "bad",
        email=email,
        after=path_after(visit),
        carried={} if carried is None else carried.as_fields(),
    )


def code_page(
    visit: Visit, *, carried: Carried | None = None, message: str = "", status: int = 200
) -> Response:
    """The second step: a code of the app, or a recovery code."""
    headers = use_form_cookie(visit)
    return frame.show(
        visit,
        "Your code",
        "code.html",
        status=status,
        headers=headers,
        message=message,
        after=path_after(visit),
        carried={} if carried is None else carried.as_fields(),
    )


def ask_to_confirm(visit: Visit) -> Response:
    """Lead to the page that asks for a fresh second factor, and from there back."""
    path = own_path(visit.request.target if visit.request.method == "GET" else _referring(visit))
    return frame.go_to(with_next(CONFIRM, path))


def _referring(visit: Visit) -> str:
    """The path of the page from which the form was sent, as the browser says."""
    referrer = visit.request.header(b"referer") or ""
    return referrer.removeprefix(visit.app.config.console_origin)


def resume_page(visit: Visit, carried: Carried, *headers: Header) -> Response:
    """The fields of a form that was sent when its session had ended, to look at and send again. A form
    in which nothing was typed is no more than its button: then the way back to its page, which says
    what the button does.
    """
    fields = carried.fields
    hidden = {name: text for name, text in fields.items() if name in _OF_THE_PAGE}
    ticked = [name for name, text in fields.items() if text == CHECKED and name not in hidden]
    typed = {
        name: text for name, text in fields.items() if name not in hidden and name not in ticked
    }
    return frame.show(
        visit,
        "Your form",
        "resume.html",
        path=carried.path,
        hidden=hidden,
        typed=typed,
        ticked=ticked,
        checked=CHECKED,
        headers=headers,
    )


def session_cookies(visit: Visit, signed_in: SignedIn) -> tuple[Header, ...]:
    """The cookies of a new session, or of one with new secrets; those of the sign-in end."""
    config = visit.app.config
    return (
        cookies.set_cookie(config, cookies.SESSION, signed_in.secret),
        cookies.set_cookie(
            config, cookies.BROWSER, signed_in.browser_secret, seconds=cookies.BROWSER_SECONDS
        ),
        cookies.drop_cookie(config, cookies.ATTEMPT),
        cookies.drop_cookie(config, cookies.FORM),
    )


def take_session(visit: Visit, signed_in: SignedIn) -> tuple[Header, ...]:
    """Show this answer as a page of the new session; returns its cookies."""
    visit.session = signed_in.session
    visit.secret = signed_in.secret
    return session_cookies(visit, signed_in)


def recovery_codes_page(
    visit: Visit, codes: Sequence[str], *headers: Header, after: str
) -> Response:
    """New recovery codes, which are shown in this answer only."""
    return frame.show(
        visit,
        "Your recovery codes",
        "recovery_codes.html",
        headers=headers,
        recovery_codes=codes,
        after=after,
    )


def use_form_cookie(visit: Visit) -> tuple[Header, ...]:
    """Before the sign-in the token of a form comes from a cookie of its own: this request's, or a
    new one.
    """
    config = visit.app.config
    visit.secret = cookies.read_cookie(config, visit.request, cookies.FORM)
    if visit.secret is not None:
        return ()
    visit.secret = cookies.new_form_secret()
    return (cookies.set_cookie(config, cookies.FORM, visit.secret),)
