"""Operations: endpoints with what their handlers' docstrings say of them. The first paragraph is the summary and the
description; the second has a line for each of these, which 4 more spaces continue:

`200 Schema [Headers]: text` is a good answer; `Cache-Control` is its header if none is named, and media types may stand instead
of the schema of JSON. `Body`, `Parameters`, `Problems`, `Faults` and `Errors` list words: the schema of the body, keys of
`parameters`, the kinds of problems that don't follow from the endpoint's form, the codes of its 422, the errors of RFC 6749.
"""

import re
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

from frontdesk.access.model import Scope
from frontdesk.api.notation import COMMON_TYPES, Schema, explained, ref
from frontdesk.api.parameters import PARAMETERS
from frontdesk.files.model import REPORT_CODES
from frontdesk.files.report import COLUMNS
from frontdesk.web.endpoint import Endpoint, Handler

JSON = "application/json"
# Media types of eligibility files and reports, with the format of their example. Generated clients send the first one, or
# application/json wherever it stands in the list and then everything as JSON: so it is missing here, and taken all the same.
FILE_TYPES = {
    "application/octet-stream": "json",
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/edi-x12": "834",
}
UPLOAD_TYPES = (*FILE_TYPES, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
# The media type of RFC 6749: of several, generators of clients send none right.
FORM = "application/x-www-form-urlencoded"

_LISTS = ("Body", "Parameters", "Problems", "Faults", "Errors")
_ANSWER = re.compile(r"(\d{3})([^[:]*)(?:\[(.*?)\])?: (.*)")
_FILLED_IN = {
    "{COLUMNS}": ", ".join(f"`{name}`" for name in COLUMNS),
    "{REPORT_CODES}": f"\n\n{explained(REPORT_CODES)}",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer. `content` is the schema of each media type."""

    status: str
    text: str
    content: dict[str, Schema]
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Endpoint):
    """An endpoint as the document describes it. `body` is the schema of each media type."""

    summary: str
    description: str
    answers: tuple[Answer, ...]
    body: dict[str, Schema]
    parameters: tuple[str, ...]
    problems: tuple[str, ...]
    faults: tuple[str, ...]
    oauth_errors: tuple[str, ...]

    @property
    def id(self) -> str:
        """The name of the handler as the document writes it: `listPlans` for `list_plans`."""
        first, *others = self.handler.__name__.split("_")
        return first + "".join(map(str.capitalize, others))

    @property
    def is_oauth(self) -> bool:
        """Whether it is one of /oauth, where clients send their credentials."""
        return self.path.startswith("/oauth/")


def operation(
    method: str,
    path: str,
    handler: Handler,
    scope: Scope | None = None,
    *,
    strict_query: bool = False,
    **options: Any,
) -> Operation:
    """The operation of a route. Those of /v2 name unknown query parameters, or refuse them if `strict_query`."""
    told, _, notes = cleandoc(handler.__doc__ or "").partition("\n\n")
    summary, _, description = told.replace("\n", " ").partition(". ")
    answers: list[Answer] = []
    listed: dict[str, list[str]] = {name: [] for name in _LISTS}
    for line in re.sub(r"\n {4,}", " ", notes).splitlines():
        name, _, words = line.partition(": ")
        if match := _ANSWER.fullmatch(line):
            answers.append(_answer(*match.groups()))
        elif name in listed:
            listed[name] = words.split()
        else:
            raise ValueError(line)
    body, parameters, problems, faults, errors = listed.values()
    query = None
    if path.startswith("/v2/"):
        sent = [PARAMETERS[key] for key in parameters]
        query = {each["name"]: each["schema"] for each in sent if each["in"] == "query"}
        parameters += [] if strict_query else ["prefer"]
        faults += ["unknown_parameter"]
    return Operation(
        method=method,
        path=path,
        handler=handler,
        scope=scope,
        takes_json=path.startswith("/v2/") and body not in ([], ["file"]),
        serves_json=not any(answer.content and JSON not in answer.content for answer in answers),
        query=query,
        strict_query=strict_query,
        summary=summary,
        description=description,
        answers=tuple(answers),
        body=_body(body[0], path) if body else {},
        parameters=tuple(parameters),
        problems=tuple(problems),
        faults=tuple(faults),
        oauth_errors=tuple(errors),
        **options,
    )


def _answer(status: str, content: str, headers: str | None, text: str) -> Answer:
    for name, filling in _FILLED_IN.items():
        text = text.replace(f" {name}" if filling.startswith("\n") else name, filling)
    schemas: dict[str, Schema] = {}
    for name in content.split():
        if "/" in name:
            schemas[name] = COMMON_TYPES["string"]
        else:
            schemas[JSON] = COMMON_TYPES.get(name) or ref(name)
    return Answer(status, text, schemas, tuple((headers or "Cache-Control").split()))


def _body(name: str, path: str) -> dict[str, Schema]:
    if name == "file":
        return {media_type: {"type": "string", "format": "binary"} for media_type in UPLOAD_TYPES}
    return {JSON if path.startswith("/v2/") else FORM: ref(name)}
