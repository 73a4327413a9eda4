"""Operations: a decorator beside each handler declares what the handler takes and answers.

    GROUP = Group("Plans", "Plans and their queues.")

    @GROUP.get(Path.PLAN, scope=Scope.PLANS_READ, answers={200: Answer("The plan.", Plans)})
    async def show_plan(app: App, request: Request) -> Response:
        '''Read one plan.

        Answers the envelope of the list, with one plan.
        '''

The handler's name is the operation's id in the OpenAPI document, its docstring the summary and the
description. What follows from the form is not declared: `interface.document` adds it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Required, TypedDict, TypeVar, Unpack

from frontdesk.access.model import Scope
from frontdesk.codes import Code, Kind
from frontdesk.interface.parameters import CACHE_CONTROL, IDEMPOTENCY_KEY, PREFER, Header, Parameter
from frontdesk.interface.words import FileContent
from frontdesk.web.endpoint import Endpoint, Handler

# Media types of eligibility files and reports, with the format of their example. Generated clients
# send the first one, or application/json wherever it stands in the list and then everything as
# JSON: so it is missing here, and taken all the same.
FILE_TYPES = {
    "application/octet-stream": "json",
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/edi-x12": "834",
}


class Content(NamedTuple):
    """The content of a body or an answer that is not JSON, or not only."""

    media_types: Sequence[str]
    type: Any = str


FILE = Content(
    (*FILE_TYPES, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"), FileContent
)


def form(fields: Any) -> Content:
    """A form with these fields. It has the one media type of RFC 6749: of several, generators of
    clients send none right.
    """
    return Content(("application/x-www-form-urlencoded",), fields)


class Answer(NamedTuple):
    """A good answer: its description, the type of its JSON or its other content, its headers."""

    text: str
    content: Any = None
    headers: Sequence[Header] = (CACHE_CONTROL,)


class Contract(TypedDict, total=False):
    """What a decorator declares of an operation."""

    answers: Required[Mapping[int, Answer]]
    scope: Scope  # of the token; without it and `any_scope` no token is asked for
    any_scope: bool
    body: Any  # the type of the JSON, or Content
    takes_lines: bool  # the body may be JSON lines, too
    parameters: Sequence[Parameter]  # of the query and headers; those of the path stand in the path
    problems: Sequence[Kind]  # that don't follow from the operation's form
    faults: Sequence[Code]  # of a 422
    oauth_errors: Sequence[Code]  # of RFC 6749, instead of faults
    ignores_accept: bool  # serves JSON to a caller that does not accept it
    outlives_database: bool
    is_bulk: bool


class Declaration(NamedTuple):
    """A handler with its method, path and contract."""

    method: str
    path: str
    handler: Handler
    contract: Contract

    @property
    def id(self) -> str:
        """The handler's name as the document writes it: `listPlans` for `list_plans`."""
        first, *others = self.handler.__name__.split("_")
        return first + "".join(map(str.capitalize, others))


Declared = TypeVar("Declared", bound=Handler)


class Decorator(Protocol):
    """Declares the handler, and gives it back as it is."""

    def __call__(self, handler: Declared, /) -> Declared: ...


class Group:
    """Operations that the document shows together, under a name and a text."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.declarations: list[Declaration] = []

    def get(self, path: str, **contract: Unpack[Contract]) -> Decorator:
        return self._declare("GET", path, contract)

    def post(self, path: str, **contract: Unpack[Contract]) -> Decorator:
        return self._declare("POST", path, contract)

    def put(self, path: str, **contract: Unpack[Contract]) -> Decorator:
        return self._declare("PUT", path, contract)

    def patch(self, path: str, **contract: Unpack[Contract]) -> Decorator:
        return self._declare("PATCH", path, contract)

    def delete(self, path: str, **contract: Unpack[Contract]) -> Decorator:
        return self._declare("DELETE", path, contract)

    def _declare(self, method: str, path: str, contract: Contract) -> Decorator:
        def declare(handler: Declared, /) -> Declared:
            self.declarations.append(Declaration(method, str(path), handler, contract))
            return handler

        return declare


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Endpoint):
    """An endpoint with its declaration and the name of its group."""

    id: str
    group: str
    contract: Contract

    @property
    def asks_token(self) -> bool:
        return self.any_scope or self.scope is not None

    @property
    def is_of_v2(self) -> bool:
        return self.path.startswith("/v2/")


def arranged(groups: Sequence[Group]) -> tuple[Operation, ...]:
    """The operations of these groups.

    Raises ValueError for an empty group, a method twice, a place under two parameter names, an id
    twice, and a handler without a docstring or an answer.
    """
    for group in groups:
        if not group.declarations:
            raise ValueError(f"the group {group.name} has no operation")
    declarations = [each for group in groups for each in group.declarations]
    _refuse_repeated("declared twice", (f"{each.method} {each.path}" for each in declarations))
    _refuse_repeated("the id of two operations", (each.id for each in declarations))
    places = {
        path[: end.end()]
        for path in {each.path for each in declarations}
        for end in re.finditer(r"{\w+}", path)
    }
    named = (re.sub(r"{\w+}", "{}", place) for place in places)
    _refuse_repeated("a parameter with two names", named)
    for each in declarations:
        if not each.handler.__doc__:
            raise ValueError(f"{each.method} {each.path} has a handler without a docstring")
        if not each.contract.get("answers"):
            raise ValueError(f"{each.method} {each.path} has no answer")
    return tuple(_operation(each, group.name) for group in groups for each in group.declarations)


def _refuse_repeated(fault: str, names: Iterable[str]) -> None:
    """Raises ValueError if a name is there twice."""
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise ValueError(f"{', '.join(repeated)}: {fault}")


def _operation(declared: Declaration, group: str) -> Operation:
    """Operations of /v2 name unknown query parameters. With a body they refuse them: a misspelt
    parameter of an upload or a mapping may be a `dry_run` or a `default`. An operation that
    declares PREFER leaves that to the caller.
    """
    method, path, handler, contract = declared
    body = contract.get("body")
    parameters = contract.get("parameters", ())
    query = None
    if path.startswith("/v2/"):
        query = {each.name: each.schema for each in parameters if each.place == "query"}
    contents = [answer.content for answer in contract["answers"].values()]
    is_json = not any(isinstance(content, Content) for content in contents)
    return Operation(
        method,
        path,
        handler,
        contract.get("scope"),
        takes_json=body is not None and not isinstance(body, Content),
        takes_lines=contract.get("takes_lines", False),
        serves_json=is_json and not contract.get("ignores_accept", False),
        outlives_database=contract.get("outlives_database", False),
        query=query,
        strict_query=bool(query) and body is not None and PREFER not in parameters,
        any_scope=contract.get("any_scope", False),
        takes_key=IDEMPOTENCY_KEY in parameters,
        is_bulk=contract.get("is_bulk", False),
        id=declared.id,
        group=group,
        contract=contract,
    )
