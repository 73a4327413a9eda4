"""What can go wrong on a page beyond the product's own errors, and any error as a page: what became
of the request, and what to do.
"""

from markupsafe import Markup

from frontdesk.codes import Kind
from frontdesk.console import frame
from frontdesk.console.visit import Visit
from frontdesk.errors import FrontdeskError, RateLimited
from frontdesk.users.model import RIGHTS, Right, Role
from frontdesk.web.page import page_template
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.response import Header, HttpError, Response

# Where the titles and sentences of problem details speak of tokens.
_TITLES = {
    Kind.FORBIDDEN: "You may not do this",
    Kind.UNAVAILABLE: "The database does not answer",
    Kind.NOT_FOUND: "There is nothing here",
    Kind.SUSPENDED: "The account is suspended",
}
_SENTENCES = {
    Kind.NOT_FOUND: "There is nothing at this address, or you may not know of it.",
    Kind.UNAVAILABLE: "Nothing was changed. Try again in a moment.",
}


class SignInNeeded(FrontdeskError, kind=Kind.UNAUTHORIZED):
    """The request has no session that lives."""


class NoRight(FrontdeskError, kind=Kind.FORBIDDEN):
    """No role of the user allows the page."""

    def __init__(self, right: Right) -> None:
        super().__init__(
            f"Your roles do not allow this. It is for: {', '.join(_roles_with(right))}."
        )


def _roles_with(right: Right) -> list[Role]:
    return [role for role, rights in RIGHTS.items() if right in rights]


def error_page(visit: Visit, error: Exception) -> Response:
    """The page of any exception. One that is not the product's own says nothing of its cause."""
    kind = error.kind if isinstance(error, HttpError | FrontdeskError) else Kind.INTERNAL
    problem = PROBLEMS[kind]
    title = _TITLES.get(kind, problem.title)
    detail = "" if kind is Kind.INTERNAL else getattr(error, "detail", "")
    content = page_template(frame.PACKAGE, "error.html").render(
        title=title,
        sentence=_SENTENCES.get(kind) or detail or problem.sentence,
        faults=error.faults if isinstance(error, FrontdeskError) else (),
        request_id=visit.request.request_id,
        is_form=visit.request.method == "POST",
    )
    return frame.page(
        visit,
        title,
        Markup(content),  # noqa: S704 # rendered with autoescape
        status=problem.status,
        headers=_headers(error),
    )


def _headers(error: Exception) -> tuple[Header, ...]:
    if isinstance(error, HttpError):
        return error.headers
    if isinstance(error, RateLimited):
        return ((b"retry-after", str(error.retry_after_seconds).encode()),)
    return ()
