"""The templates of invitations, an account's own or the product's: checked when they are set, rendered for each message.

A template holds text, names and conditions only, so rendering it can neither fail nor take long.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import store
from frontdesk.invitations.model import MessageTemplate
from frontdesk.text import Rejected, refuse_control_characters

SUBJECT_LENGTH = 255
PART_LENGTH = 100_000
_LINE_END_OR_TAB = re.compile(r"\r?\n|\t")

FILTERS = ("capitalize", "e", "escape", "lower", "title", "trim", "upper")
_NODES = (
    nodes.Output, nodes.TemplateData, nodes.If, nodes.CondExpr, nodes.Compare, nodes.Not, nodes.And, nodes.Or,
)  # fmt: skip


class TemplateValues(NamedTuple):
    """All that a template may name. Nothing of the member is here, so no template can reveal it."""

    plan_name: str
    sender_name: str
    registration_link: str
    unsubscribe_link: str


class RenderedMessage(NamedTuple):
    subject: str
    text: str
    html: str | None


SAMPLE_VALUES = TemplateValues(
    plan_name="Gold",
    sender_name="Example Health",
    registration_link="https://join.example.com/start?invitation=sample",
    unsubscribe_link="https://api.example.com/unsubscribe/sample",
)

NAMES = TemplateValues._fields

_plain = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_markup = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=True)
for _environment in (_plain, _markup):
    _environment.globals.clear()  # range, lipsum and the like: no template may call them, and each mail would pay for them


def render(template: MessageTemplate, values: TemplateValues) -> RenderedMessage:
    """The message's three texts. `template` must have been checked when it was set."""
    names = values._asdict()
    subject = _compiled(template.subject or default_part("subject"), markup=False).render(names)
    text = _compiled(template.text or default_part("text"), markup=False).render(names)
    source = template.html or (default_part("html") if template.text is None else None)
    html = None if source is None else _compiled(source, markup=True).render(names)
    return RenderedMessage(" ".join(subject.split())[:SUBJECT_LENGTH], text, html)


@lru_cache(maxsize=3)
def default_part(part: str) -> str:
    """The product's own template of a part: subject, text or html."""
    name = {"subject": "subject.txt", "text": "invitation.txt", "html": "invitation.html"}[part]
    return files("frontdesk.invitations").joinpath("templates", name).read_text(encoding="utf-8")


def get_template(tx: Tx, account_id: int) -> MessageTemplate:
    """The account's own templates; all None where it has set none."""
    return store.find_templates(tx, [account_id]).get(account_id, MessageTemplate())


def set_template(tx: Tx, account_id: int, *, now: datetime, **changes: str | None) -> MessageTemplate:
    """Change the parts named in `changes` (None: back to the product's template). Raises Invalid with every fault."""
    template = replace(get_template(tx, account_id), **changes)
    faults = [
        fault
        for part, source in asdict(template).items()
        if source
        for fault in find_template_faults(part, source)
    ]
    if template.html is not None and template.text is None:
        faults.append(Fault("text", "required", "must be given when html is: some people read only text"))
    if faults:
        raise Invalid(faults)
    store.save_template(tx, account_id, template, now=now)
    return template


def find_template_faults(part: str, source: str) -> Iterator[Fault]:
    """Why the source can't be this part's template. A later fault may follow from an earlier one."""
    limit = SUBJECT_LENGTH if part == "subject" else PART_LENGTH
    if len(source) > limit:
        yield Fault(part, "too_long", f"must have at most {limit} characters")
        return
    try:
        refuse_control_characters(source if part == "subject" else _LINE_END_OR_TAB.sub(" ", source))
        refusal = next(filter(None, map(_refusal, _plain.parse(source).find_all(nodes.Node))), None)
        sample = SAMPLE_VALUES._asdict()
        rendered = "" if refusal else _compiled(source, markup=part == "html").render(sample)
    except Rejected as rejected:
        yield Fault(part, rejected.code, rejected.message)
    except TemplateSyntaxError as error:
        yield Fault(
            part, "malformed_template", f"must be a Jinja template; line {error.lineno} can't be read"
        )
    except (RecursionError, SyntaxError):
        yield Fault(part, "malformed_template", "must not be nested so deeply")
    else:
        yield from [Fault(part, "not_allowed", refusal)] if refusal else _missing(part, rendered)


def _refusal(node: nodes.Node) -> str | None:
    """Why the node is refused: loops, calls, attributes, arithmetic, comparisons that can fail, other names."""
    match node:
        case nodes.Name():
            return None if node.name in NAMES else f"line {node.lineno} must name one of {', '.join(NAMES)}"
        case nodes.Filter():
            plain = not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
            known = node.name in FILTERS and plain and node.node is not None
            return None if known else f"line {node.lineno} must use one of the filters {', '.join(FILTERS)}"
        case nodes.Const():
            allowed = type(node.value) is str
        case nodes.Operand():
            allowed = node.op in ("eq", "ne", "in", "notin")
        case _:
            allowed = isinstance(node, _NODES)
    return None if allowed else f"line {node.lineno} must have only text, names and conditions"


def _missing(part: str, rendered: str) -> Iterator[Fault]:
    if part == "subject":
        if not rendered.strip():
            yield Fault(part, "required", "must not be blank")
        return
    for name in ("registration_link", "unsubscribe_link"):
        if getattr(SAMPLE_VALUES, name) not in rendered:
            yield Fault(part, "link_missing", f"must show {{{{ {name} }}}}")


@lru_cache(maxsize=512)
def _compiled(source: str, *, markup: bool) -> Template:
    return (_markup if markup else _plain).from_string(source)
