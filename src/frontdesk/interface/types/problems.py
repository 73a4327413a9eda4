"""Errors, and the health of the process. Only doors of HTTP import this module: the reference
shows codes with their HTTP status.
"""

from typing import Annotated, Literal, NotRequired, TypedDict

from frontdesk.codes import Kind, Remedy, Where, of
from frontdesk.interface.schema import Keywords, explained, one_of
from frontdesk.web.problems import fault_sentences

FAULTS = fault_sentences()


class FaultBody(TypedDict):
    """One field at fault."""

    field: Annotated[
        str, "The body's member, dotted below it (`metadata.color`), or the query parameter."
    ]
    code: Annotated[str, one_of(FAULTS), explained(FAULTS).strip()]
    message: Annotated[str, "The rule in words; it never repeats the value."]
    did_you_mean: NotRequired[
        Annotated[str, "The similar name of a field or parameter that exists."]
    ]


class ProblemRemedy(TypedDict):
    """What to do about a problem."""

    action: Annotated[str, one_of(Remedy), "The word of the remedy."]
    method: Annotated[str, "Method of the operation."]
    path: Annotated[str, "Its path; an id that the service does not know is a name in braces."]
    note: NotRequired[Annotated[str, "What its request has to be like."]]


class ProblemBody(TypedDict):
    """Problem details (RFC 9457)."""

    type: Annotated[str, f"Its fragment is the kind of problem:{explained(Kind)}."]
    title: str
    detail: str
    request_id: str
    status: int
    instance: Annotated[str, "The request's path."]
    errors: NotRequired[
        Annotated[
            list[FaultBody], Keywords(minItems=1), "All faults, or what is wrong more exactly."
        ]
    ]
    did_you_mean: NotRequired[
        Annotated[
            dict[str, str], "Ignored fields and parameters, each with the similar name that exists."
        ]
    ]
    remedy: NotRequired[
        Annotated[ProblemRemedy, "What to do about it, where one operation does it."]
    ]


class OAuthErrorBody(TypedDict):
    """An error of RFC 6749, section 5.2."""

    error: Annotated[str, one_of(of(Where.OAUTH))]
    error_description: str


class Health(TypedDict):
    """Health of the process."""

    status: Literal["ok", "ready"]
    revision: NotRequired[Annotated[str, "Of the database."]]
