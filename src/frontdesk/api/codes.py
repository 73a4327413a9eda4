"""The content of /problems: every problem, fault code, warning and reason, with an example of each.

assets/code_examples.json has the request that leads to a fault or warning, and the fault.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from markupsafe import Markup

from frontdesk.eligibility.model import FAULT_CODES, WARNINGS
from frontdesk.files.model import FILE_PROBLEMS, REPORT_CODES
from frontdesk.invitations.model import NotInvitedReason
from frontdesk.web.problems import CONFLICT_CODES, INTENT_CODES, PROBLEMS, QUOTA_CODES, problem_content

REQUEST_ID = "5f0c1a2b00000001"
_PATH = "/v2/plans/1/eligibility"
_CODE = Markup('<dt id="{}"><code>{}</code></dt><dd>{}<pre tabindex="0"><code>{}</code></pre></dd>')


@cache
def code_examples() -> dict[str, dict[str, Any]]:
    """By code: `request` (method and path), `headers`, `body`, and the `fault` that the request leads to."""
    path = files("frontdesk.api").joinpath("assets/code_examples.json")
    examples: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return examples


def _problem(base_url: str, kind: str, _text: str) -> str:
    return _json(problem_content(base_url, kind, "", instance=_PATH, request_id=REQUEST_ID))


def _fault(_base_url: str, code: str, text: str) -> str:
    example = code_examples().get(code, {})
    return _sent(example) + _json(
        {"errors": [example.get("fault", {"field": "", "code": code, "message": text})]}
    )


def _warning(_base_url: str, code: str, _text: str) -> str:
    return _sent(code_examples().get(code, {})) + f"Eligibility-Warnings: {code}"


def _reason(_base_url: str, code: str, _text: str) -> str:
    return f"Invitation: none; reason={code}"


def _report_line(_base_url: str, code: str, text: str) -> str:
    return _json(
        {"row": 2, "external_id": "AB 123356", "outcome": "…", "code": code, "field": "…", "hint": text}
    )


def _file_problem(_base_url: str, code: str, text: str) -> str:
    return _json({"data": {"type": "eligibility_files", "problem": {"code": code, "message": text}}})


class CodeSection(NamedTuple):
    """Codes with their texts. Their anchors have a prefix where some codes have the name of another section's code. `example`
    gives the example of a code from the base URL, the code and its text."""

    heading: str
    prefix: str
    codes: Mapping[str, str]
    example: Callable[[str, str, str], str]


SECTIONS = (
    CodeSection(
        "Problems",
        "",
        {kind: f"{each.status}. {each.title}. {each.happens}" for kind, each in PROBLEMS.items()},
        _problem,
    ),
    CodeSection(
        "Fault codes, in errors[].code", "", FAULT_CODES | QUOTA_CODES | INTENT_CODES | CONFLICT_CODES, _fault
    ),
    CodeSection("Warnings, in Eligibility-Warnings", "", WARNINGS, _warning),
    CodeSection(
        "Why a member is not invited, in Invitation",
        "",
        {str(reason): reason.description for reason in NotInvitedReason},
        _reason,
    ),
    CodeSection("More codes, in the report of a file", "row-", REPORT_CODES, _report_line),
    CodeSection("Why a file failed or is held, in problem.code", "file-", FILE_PROBLEMS, _file_problem),
)


def codes_content(base_url: str) -> Markup:
    """The page's content. The anchor of each code is its name, with the prefix of its section."""
    content = Markup("<h1>Codes of errors</h1>")
    for section in SECTIONS:
        entries = (
            _CODE.format(section.prefix + code, code, text, section.example(base_url, code, text))
            for code, text in section.codes.items()
        )
        content += Markup("<h2>{}</h2><dl>{}</dl>").format(section.heading, Markup("").join(entries))
    return content


def _sent(example: Mapping[str, Any]) -> str:
    """The request of the example, as text."""
    if not example:
        return ""
    body = example.get("body", "")
    text = body if isinstance(body, str) else _json(body)
    lines = [example["request"], *(f"{name}: {value}" for name, value in example.get("headers", {}).items())]
    return "\n".join([*lines, *(["", text.rstrip()] if text else []), "", ""])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
