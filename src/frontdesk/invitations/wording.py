"""What an invitation says, in the product's words or an account's own: checked templates; it knows no header and sends nothing.

An account's template is text with names and conditions and nothing else, so that rendering it can neither fail nor take long.
"""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache
from importlib.resources import files

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import letter_store
from frontdesk.text import Rejected, refuse_control_characters

SUBJECT_LENGTH = 255
PART_LENGTH = 100_000

FILTERS = ("capitalize", "e", "escape", "lower", "title", "trim", "upper")
_NODES = (
    nodes.Output, nodes.TemplateData, nodes.If, nodes.CondExpr, nodes.Compare, nodes.Not, nodes.And, nodes.Or,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wording:
    """An account's own templates; None is the product's. Text without HTML makes a mail of text alone."""

    subject: str | None = None
    text: str | None = None
    html: str | None = None


OWN_WORDS = Wording()


@dataclass(frozen=True, slots=True)
class Filling:
    """All that a template may name. Nothing of the member is here, so no template can tell it."""

    plan_name: str
    sender_name: str
    registration_link: str
    unsubscribe_link: str


@dataclass(frozen=True, slots=True)
class Rendered:
    subject: str
    text: str
    html: str | None


SAMPLE = Filling(
    plan_name="Gold",
    sender_name="Example Health",
    registration_link="https://join.example.com/start?invitation=sample",
    unsubscribe_link="https://api.example.com/unsubscribe/sample",
)

NAMES = tuple(asdict(SAMPLE))

_plain = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_markup = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=True)
for _environment in (_plain, _markup):
    _environment.globals.clear()  # range, lipsum and the like: no template may call them, and each mail would pay for them


def render(wording: Wording, filling: Filling) -> Rendered:
    """The mail's three texts. `wording` must have been checked when it was set."""
    values = {name: getattr(filling, name) for name in NAMES}
    subject = _compiled(wording.subject or default("subject"), markup=False).render(values)
    text = _compiled(wording.text or default("text"), markup=False).render(values)
    source = wording.html or (default("html") if wording.text is None else None)
    html = None if source is None else _compiled(source, markup=True).render(values)
    return Rendered(" ".join(subject.split())[:SUBJECT_LENGTH], text, html)


def default(part: str) -> str:
    """The product's own template of a part: subject, text or html."""
    return _own_words()[part]


def get_wording(tx: Tx, account_id: int) -> Wording:
    return find_wordings(tx, [account_id]).get(account_id, OWN_WORDS)


def find_wordings(tx: Tx, account_ids: Collection[int]) -> dict[int, Wording]:
    """The wordings of those of the accounts that have their own. One set read."""
    return {
        row["account_id"]: Wording(row["subject"], row["text"], row["html"])
        for row in letter_store.find_templates(tx, account_ids)
    }


def set_wording(tx: Tx, account_id: int, *, now: datetime, **changes: str | None) -> Wording:
    """Change the parts named in `changes` (None: back to the product's words). Raises Invalid with every fault."""
    wording = replace(get_wording(tx, account_id), **changes)
    faults = [
        fault for part, source in asdict(wording).items() if source for fault in faults_in(part, source)
    ]
    if wording.html is not None and wording.text is None:
        faults.append(Fault("text", "required", "must be given when html is: some people read only text"))
    if faults:
        raise Invalid(faults)
    if wording == OWN_WORDS:
        letter_store.delete_template(tx, account_id)
    else:
        letter_store.save_template(tx, asdict(wording) | {"account_id": account_id, "updated_at": now})
    return wording


def faults_in(part: str, source: str) -> Iterator[Fault]:
    """Why the source can't be this part's template; what comes later may follow from what comes first."""
    limit = SUBJECT_LENGTH if part == "subject" else PART_LENGTH
    if len(source) > limit:
        yield Fault(part, "too_long", f"must have at most {limit} characters")
        return
    try:
        refuse_control_characters(source if part == "subject" else _one_line(source))
        refusals = [_refusal(node) for node in _plain.parse(source).find_all(nodes.Node)]
        rendered = "" if any(refusals) else _compiled(source, markup=part == "html").render(asdict(SAMPLE))
    except Rejected as rejected:
        yield Fault(part, rejected.code, rejected.message)
    except TemplateSyntaxError as error:
        yield Fault(
            part, "malformed_template", f"must be a Jinja template; line {error.lineno} can't be read"
        )
    except (RecursionError, SyntaxError):
        yield Fault(part, "malformed_template", "must not be nested so deeply")
    else:
        refused = next(filter(None, refusals), None)
        yield from [Fault(part, "not_allowed", refused)] if refused else _missing(part, rendered)


def _refusal(node: nodes.Node) -> str | None:
    """What may not stand in a template: loops, calls, attributes, arithmetic, comparisons that can fail, other names."""
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
        if getattr(SAMPLE, name) not in rendered:
            yield Fault(part, "link_missing", f"must show {{{{ {name} }}}}")


def _one_line(source: str) -> str:
    return source.replace("\r\n", " ").replace("\n", " ").replace("\t", " ")


@lru_cache(maxsize=512)
def _compiled(source: str, *, markup: bool) -> Template:
    return (_markup if markup else _plain).from_string(source)


@lru_cache(maxsize=1)
def _own_words() -> dict[str, str]:
    folder = files("frontdesk.invitations").joinpath("templates")
    names = {"subject": "subject.txt", "text": "invitation.txt", "html": "invitation.html"}
    return {part: folder.joinpath(name).read_text(encoding="utf-8") for part, name in names.items()}
