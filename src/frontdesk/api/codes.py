"""The content of /problems: every problem, code and reason, with an example of each."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from markupsafe import Markup

from frontdesk import codes
from frontdesk.codes import Code, Example, Where
from frontdesk.invitations.model import NotInvitedReason, QueuedReason
from frontdesk.web.problems import PROBLEMS, problem_content, shown_sentence

REQUEST_ID = "5f0c1a2b00000001"
_PATH = "/v2/plans/1/eligibility"
_CODE = Markup(
    '<dt id="{0}"><a href="#{0}"><code>{1}</code></a></dt>'
    '<dd>{2}<pre tabindex="0"><code>{3}</code></pre></dd>'
)


class CodeEntry(NamedTuple):
    """A word of the page, what it means, and an example of an answer that has it."""

    word: str
    text: str
    example: str


class CodeSection(NamedTuple):
    """Codes under one heading. Their anchors have a prefix where some codes have the name of
    another section's code.
    """

    heading: str
    prefix: str
    entries: Iterable[CodeEntry]


def sections(base_url: str) -> list[CodeSection]:
    """The sections of the page, in its order."""
    return [
        CodeSection("Problems", "", _problems(base_url)),
        _section("Fault codes, in errors[].code", Where.FAULT),
        _section("Warnings, in Eligibility-Warnings", Where.WARNING),
        CodeSection(
            "Why a member is not invited, in Invitation",
            "",
            [
                CodeEntry(reason, reason.description, f"Invitation: none; reason={reason}")
                for reason in NotInvitedReason
            ],
        ),
        CodeSection(
            "Why an immediate invitation waits, in Invitation",
            "",
            [
                CodeEntry(reason, reason.description, f"Invitation: queued; reason={reason}")
                for reason in QueuedReason
            ],
        ),
        _section("More codes, in the report of a file", Where.ROW, prefix="row-"),
        _section("Why a file failed or is held, in problem.code", Where.FILE, prefix="file-"),
    ]


def codes_content(base_url: str) -> Markup:
    """The page's content. The anchor of each code is its name, with the prefix of its section."""
    content = Markup("<h1>Codes of errors</h1>")
    for section in sections(base_url):
        entries = (
            _CODE.format(section.prefix + entry.word, entry.word, entry.text, entry.example)
            for entry in section.entries
        )
        content += Markup("<h2>{}</h2><dl>{}</dl>").format(
            section.heading, Markup("").join(entries)
        )
    return content


def example_of(code: Code) -> str:
    """The request that leads to the code, if one is known, and the part of the answer with it."""
    sent = _request(code.example) if code.example else ""
    return sent + _ANSWERS[code.where](code)


def _section(heading: str, where: Where, *, prefix: str = "") -> CodeSection:
    # Kinds of problems that are codes too stand in the section of problems.
    entries = [
        CodeEntry(code, shown_sentence(code), example_of(code))
        for code in codes.of(where)
        if not code.is_kind
    ]
    return CodeSection(heading, prefix, entries)


def _problems(base_url: str) -> Iterable[CodeEntry]:
    for kind, problem in PROBLEMS.items():
        content = problem_content(base_url, kind, "", instance=_PATH, request_id=REQUEST_ID)
        text = f"{problem.status}. {problem.title}. {problem.sentence}"
        yield CodeEntry(kind, text, _json(content))


def _request(example: Example) -> str:
    """The request as text: method and path, headers, body."""
    lines = [example.request, *(f"{name}: {value}" for name, value in example.headers.items())]
    body = example.body
    text = body if isinstance(body, str) else _json(body)
    if text:
        lines += ["", text.rstrip()]
    return "\n".join([*lines, "", ""])


def _faults(code: Code) -> str:
    message = code.example.rule if code.example else shown_sentence(code)
    field = code.example.field if code.example else ""
    return _json({"errors": [{"field": field, "code": code, "message": message}]})


def _report_line(code: Code) -> str:
    line = {"row": 2, "external_id": "AB 123356", "outcome": "…"}
    return _json(line | {"code": code, "field": "…", "hint": code.sentence})


def _file(code: Code) -> str:
    problem = {"code": code, "message": code.sentence}
    return _json({"data": {"type": "eligibility_files", "problem": problem}})


def _oauth_error(code: Code) -> str:
    return _json({"error": code, "error_description": code.sentence})


def _mail(code: Code) -> str:
    return _json({"mail": {"reason": code, "why": code.sentence}})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


# The part of an answer that shows a code, by where the code stands.
_ANSWERS: Mapping[Where, Callable[[Code], str]] = codes.complete(
    Where,
    {
        Where.FAULT: _faults,
        Where.WARNING: "Eligibility-Warnings: {}".format,
        Where.ROW: _report_line,
        Where.FILE: _file,
        Where.QUEUE_EVENT: _faults,
        Where.OAUTH: _oauth_error,
        Where.OPERATOR: _faults,
        Where.MAIL: _mail,
    },
)
