"""The rules that a form breaks, as sentences: the field, then the rule."""

from frontdesk.errors import Fault, FrontdeskError

# Fields whose names are no words.
LABELS = {
    "dob": "Birth date",
    "email": "E-mail",
    "external_id": "external_id",
    "member_id": "member_id",
    "on": "Last day of access",
    "effective_date": "First day of access",
    "expiry_date": "Last day of access",
    "zipcode": "Zip code",
    "relationship_code_hipaa": "Relationship code (HIPAA)",
    # Of the forms of an account's admin.
    "accounts": "Accounts of support",
    "days": "The secret ends after days",
    "event_id": "One event",
    "number": "The form",
    "others": "The secret before it",
    "scope": "Scopes",
    "since": "All since",
    "url": "Address",
}


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
        known = texts.get(name, "")
        texts[name] = known if sentence in known else f"{known} {sentence}".strip()
    return texts


# What a rule calls by the words of the API, as a form calls it.
_WORDS = {
    "null or blank": "blank",
    "effective_date": "the first day of access",
    "expiry_date": "the last day of access",
}


def _rule_of(fault: Fault) -> str:
    """The rule in the words of a form, without a full stop."""
    rule = fault.message.rstrip(".")
    for word, text in _WORDS.items():
        rule = rule.replace(word, text)
    return rule
