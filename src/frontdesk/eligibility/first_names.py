"""First names as they tell persons apart: folded, and those that stand for none yet."""

import re

# What senders write for a child without a name yet, folded.
_NEWBORN = re.compile(
    r"(?:baby|newborn|infant|nb)(?:boy|girl|male|female|[a-dfgm1-4])?|(?:boy|girl)[a-d1-4]?|b[bg]|(?:baby(?:boy|girl|of)|newborn).*"
)


def fold_first_name(name: str) -> str:
    """A first name without letter case, spaces and punctuation."""
    folded = name.casefold()
    return folded if folded.isalnum() else "".join(filter(str.isalnum, folded))


def is_newborn_name(name: str) -> bool:
    """Whether a first name stands for a child that had none yet, as `Baby Boy`."""
    return _NEWBORN.fullmatch(fold_first_name(name)) is not None
