"""The rules that a form breaks, as sentences: the field, then the rule."""

from frontdesk.errors import Fault, FrontdeskError

# Fields whose names are no words.
LABELS = {
    "dob": "Birth date",
    "email": "E-mail",
    "external_id": "external_id",
    "case": "Case number",
    "text": "The answer",
    "member_id": "member_id",
    "on": "Last day of access",
    "effective_date": "First day of access",
    "expiry_date": "Last day of access",
    "zipcode": "Zip code",
    "relationship_code_hipaa": "Relationship code (HIPAA)",
}


# Where the rule of a field names another one.
_NAMED = {"effective_date": "the first day of access", "expiry_date": "the last day of access"}


def label_of(field: str) -> str:
    """The field as a form names it; a part of a field (`metadata.key`) has the field's label.

    >>> label_of("last_name")
    'Last name'
    """
    name = field.partition(".")[0]
    return LABELS.get(name) or name.replace("_", " ").capitalize()


def rules_text(error: FrontdeskError) -> str:
    """The rules of the fields at fault; without any the error's own sentence."""
    rules = [f"{label_of(fault.field)}: {_rule_of(fault)}." for fault in error.faults]
    return " ".join(rules) or error.detail


def rules_by_field(faults: tuple[Fault, ...]) -> dict[str, str]:
    """The rules of each field, as the text that stands at it."""
    texts: dict[str, str] = {}
    for fault in faults:
        name = fault.field.partition(".")[0]
        rule = _rule_of(fault)
        sentence = f"{rule[:1].upper()}{rule[1:]}."
        texts[name] = f"{texts[name]} {sentence}" if name in texts else sentence
    return texts


def _rule_of(fault: Fault) -> str:
    rule = fault.message.rstrip(".")
    for name, words in _NAMED.items():
        rule = rule.replace(name, words)
    return rule
