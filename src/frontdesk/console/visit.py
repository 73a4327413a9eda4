"""One request of a page: whose it is, what it reaches, and the form that it carries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from urllib.parse import parse_qsl

from frontdesk import codes
from frontdesk.app import App
from frontdesk.audit import Requester
from frontdesk.console import cookies
from frontdesk.errors import Fault, Invalid, Malformed
from frontdesk.reach import EVERY, Reach
from frontdesk.users.model import Session, User, Visitor
from frontdesk.web.endpoint import requester_of
from frontdesk.web.multipart import MULTIPART, FormWithFile
from frontdesk.web.request import Request

FORM_TYPE = "application/x-www-form-urlencoded"
TOKEN_FIELD = "token"  # noqa: S105 # the name of a form's field
MOST_FIELDS = 500  # a file of 200 columns has up to two for each
LARGEST_ID = 2**63 - 1
LONGEST_TEXT = 1000  # characters of a field that a page does not limit itself

Word = TypeVar("Word", bound=StrEnum)


class Form:
    """The fields of a form, each with one text. Empty for a request without one."""

    def __init__(self, fields: Mapping[str, str] | None = None) -> None:
        self.fields = dict(fields or {})

    def text(self, name: str, *, longest: int = LONGEST_TEXT) -> str:
        """The field without spaces around it; "" if it is missing. Raises Invalid for a longer one."""
        value = self.fields.get(name, "").strip()
        if len(value) > longest:
            rule = f"use {longest} characters at most"
            raise Invalid([Fault(name, codes.faults.TOO_LONG, rule)])
        return value

    def number(self, name: str, *, longest: int = 20, largest: int = LARGEST_ID) -> int | None:
        """The field as a whole number; None for a text that is none, and for a larger one. Raises
        Invalid for a text with more than `longest` characters.
        """
        text = self.text(name, longest=longest)
        is_number = text.isascii() and text.isdecimal()
        return int(text) if is_number and int(text) <= largest else None

    def password(self, name: str) -> str:
        """The field as it was typed, spaces included."""
        return self.fields.get(name, "")

    def word(self, name: str, kind: type[Word]) -> Word:
        """Raises Invalid unless the field is one of the words."""
        try:
            return kind(self.fields.get(name, ""))
        except ValueError:
            raise Invalid([Fault(name, codes.faults.NOT_ALLOWED, "choose one")]) from None

    def is_set(self, name: str) -> bool:
        """Whether a check box is on, or a button was the one that was pressed."""
        return name in self.fields


@dataclass(slots=True)
class Visit:
    """A request of a page. `session` is None before the sign-in; `secret` is that of the session's
    cookie. `account_id` is that of the path, which the session reaches; None on pages of the
    installation. `account_text` names that account to those who reach several. `upload` is the form
    with a file, of which the fields before the file have been read; None for a form without one.
    """

    app: App
    request: Request
    now: datetime
    session: Session | None = None
    secret: str | None = None
    account_id: int | None = None
    account_text: str = ""
    form: Form = field(default_factory=Form)
    upload: FormWithFile | None = None

    @property
    def own_session(self) -> Session:
        """The session, on a page for signed-in users."""
        if self.session is None:
            raise LookupError("this page is shown before the sign-in")
        return self.session

    @property
    def user(self) -> User:
        """The user of the session, on a page for signed-in users."""
        return self.own_session.user

    @property
    def reach(self) -> Reach:
        """What this page may show: the account in its path, else the installation. The door has
        checked that a role of the user allows the page there.
        """
        return EVERY if self.account_id is None else Reach.of(self.account_id)

    @property
    def account(self) -> int:
        """The account in the path, on pages below `/console/accounts/{account_id}`."""
        if self.account_id is None:
            raise LookupError("this page is one of the installation")
        return self.account_id

    @property
    def requester(self) -> Requester:
        """The user as the audit trail tells it."""
        actor = "console" if self.session is None else self.session.user.actor
        return requester_of(self.app, self.request, actor=actor)

    @property
    def visitor(self) -> Visitor:
        """The browser, for the steps of a sign-in."""
        config = self.app.config
        address = self.request.address(config.trusted_proxies)
        browser = cookies.read_cookie(config, self.request, cookies.BROWSER)
        return Visitor(address, browser, self.requester)

    @property
    def form_token(self) -> str:
        """The token for the forms of this page."""
        return "" if self.secret is None else cookies.form_token(self.secret)

    def id_of(self, name: str, *, of: codes.operators.Noun) -> int:
        """The number in the path. Raises NotFound for text that can't be one."""
        return self.request.path_id(name, of=of)

    def parameter(self, name: str) -> str:
        """A parameter of the query; "" without it. Raises Malformed for more than 100."""
        return dict(self.request.query_pairs).get(name, "")[:LONGEST_TEXT]

    def number(self, name: str) -> int | None:
        """A parameter that is an id; None without it. Raises Invalid for any other text."""
        text = self.parameter(name).strip()
        if not text:
            return None
        if not (text.isascii() and text.isdecimal() and int(text[:20]) <= LARGEST_ID):
            raise Invalid([Fault(name, codes.faults.NOT_ALLOWED, "must be a number")])
        return int(text[:20])


async def read_form(request: Request) -> Form:
    """The form in the body, 64 KiB at most. Raises Malformed, HttpError."""
    body = await request.body()
    if _type_of(request) != FORM_TYPE:
        raise Malformed("This address takes a form of ours only.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except (UnicodeError, ValueError):
        raise Malformed("The form can't be read.") from None
    return Form(dict(pairs))


def sends_file(request: Request) -> bool:
    """Whether the body is a form of the kind that may have a file."""
    return _type_of(request) == MULTIPART


def _type_of(request: Request) -> str:
    return (request.header(b"content-type") or "").partition(";")[0].strip().lower()
