"""What a code is: a word that an answer carries, with all that the service says about the word.

A code is a `str`, so it is written, stored and compared as its word. A word read from the database
is a plain `str`: find its entry by `find`, and compare by `==`, never by `is`.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any, NamedTuple, Self, TypedDict, TypeVar, Unpack

POST_MEMBER = "POST /v2/plans/1/eligibility"  # the request of most examples

_Member = TypeVar("_Member", bound=Enum)
_Entry = TypeVar("_Entry")


class Where(StrEnum):
    """Where a code stands. The same word may stand in several places with other meanings."""

    FAULT = "fault"  # `errors[].code` of a problem, and a refused row of a file's report
    WARNING = "warning"  # the header Eligibility-Warnings, and a row of a file's report
    ROW = "row"  # more codes of a file's report, of faults and warnings
    FILE = "file"  # why a file is unreadable, held or ended
    QUEUE_EVENT = "queue event"  # faults of a queue event
    OAUTH = "oauth"  # `error` of /oauth (RFC 6749)
    OPERATOR = "operator"  # errors that operators meet, above all at the command line
    MAIL = "mail"  # why a member's mail has not left, at the command line and in the console


class Kind(StrEnum):
    """The kinds of problems. `frontdesk.web.problems` gives each its HTTP status and title."""

    MALFORMED = "malformed"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    SECOND_PERSON_NEEDED = "second_person_needed"
    SUSPENDED = "suspended"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    NOT_ACCEPTABLE = "not_acceptable"
    TIMEOUT = "timeout"
    CONFLICT = "conflict"
    WRONG_STATE = "wrong_state"
    GONE = "gone"
    PRECONDITION_FAILED = "precondition_failed"
    TOO_LARGE = "too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    INVALID = "invalid"
    RATE_LIMITED = "rate_limited"
    HEADERS_TOO_LARGE = "headers_too_large"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"


class Remedy(StrEnum):
    """What to do about a refusal or a held file. Each door says how: `api.remedies`,
    `cli.remedies`.
    """

    ACCEPT_MAPPING = "accept_mapping"
    APPROVE_FILE = "approve_file"
    CANCEL_FILE = "cancel_file"
    CREATE_MEMBER = "create_member"
    DECLARE_ENCODING = "declare_encoding"
    GIVE_MAPPING = "give_mapping"
    LIST_ACCOUNTS = "list_accounts"
    LIST_CLIENTS = "list_clients"
    LIST_INVITATIONS = "list_invitations"
    LIST_MESSAGES = "list_messages"
    LIST_PLANS = "list_plans"
    LIST_PROVIDER_GROUPS = "list_provider_groups"
    LIST_USERS = "list_users"
    MOVE_MEMBER = "move_member"
    NAME_ACCOUNT = "name_account"
    NAME_SHEET = "name_sheet"
    RENAME_MEMBER = "rename_member"
    RENAME_MEMBERS = "rename_members"
    SAY_HEADER = "say_header"
    SAY_MODE = "say_mode"
    SHOW_MEMBER = "show_member"
    STOP_SUPPRESSING = "stop_suppressing"
    UPDATE_MEMBER = "update_member"


class Example(NamedTuple):
    """A request that leads to a code: method and path, its body, a JSON object or a text, and
    headers. `field` and `rule` are the field and the message of the fault in its answer.
    """

    request: str
    field: str = ""
    rule: str = ""
    body: Mapping[str, Any] | str = ""
    headers: Mapping[str, str] = {}


class CodeDetails(TypedDict, total=False):
    """What an entry may have besides its sentence: attributes of `Code`."""

    kind: Kind
    remedy: Remedy | None
    field: str
    example: Example


class Code(str):
    """A word of the interface. `sentence` says when it is met, without the words of any door;
    `kind` is the kind of the problem that carries it, `remedy` what to do about it, `field` the
    field that it is about, if that is always the same one.
    """

    __slots__ = ("example", "field", "kind", "remedy", "sentence", "where")

    where: Where
    kind: Kind | None
    sentence: str
    remedy: Remedy | None
    field: str
    example: Example | None

    @classmethod
    def declared(
        cls, where: Where, word: str, sentence: str, **details: Unpack[CodeDetails]
    ) -> Self:
        """A new entry of the table. Raises ValueError for a word that stands there already."""
        code = cls(word)
        code.where = where
        code.sentence = sentence
        code.kind = details.get("kind")
        code.remedy = details.get("remedy")
        code.field = details.get("field", "")
        code.example = details.get("example")
        if (where, word) in ENTRIES:
            raise ValueError(f"the code {word} is declared twice among those of a {where}")
        ENTRIES[where, word] = code
        return code

    @property
    def is_kind(self) -> bool:
        """True for a word that is the kind of the problem too."""
        return str(self) == self.kind

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # a copy or a pickle of a code is its word


ENTRIES: dict[tuple[Where, str], Code] = {}


def complete(words: type[_Member], table: dict[_Member, _Entry]) -> dict[_Member, _Entry]:
    """The table. Raises ValueError, so that the program does not start, if a word has no entry."""
    if missing := [word.value for word in words if word not in table]:
        raise ValueError(f"{words.__name__} without an entry: {', '.join(missing)}")
    return table
