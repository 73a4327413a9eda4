"""Values that stand for none: addresses and numbers that people type into a field that must not be
empty, and what spreadsheets leave of an identifier (docs/interface.md, Identifiers and placeholders).

The lists are short on purpose. A value that somebody might really have is not in them.
"""

import re

# 9999999999 is the example of the interface, so it stays a number.
PLACEHOLDER_PHONES = frozenset((*(digit * 10 for digit in "012345678"), "1234567890"))

# What stands before the @, whatever the domain.
_LOCAL_PARTS = frozenset(
    (
        *("none", "unknown", "noemail", "no-email", "no_email", "no.email", "noemailaddress"),
        *("nomail", "no-mail", "no_mail", "no.mail"),
        *("notprovided", "not-provided", "not_provided", "not.provided"),
        *("donotemail", "do-not-email", "do_not_email", "do.not.email"),
    )
)
_ADDRESSES = frozenset(("na@na.com", "n/a@na.com", "no@no.com", "no@email.com"))

# Words for a missing value, and errors of Excel, in every letter case that programs write.
_WORDS = ("null", "none", "nan", "n/a", "#n/a", "#ref!", "#value!", "#name?", "#null!", "#num!")
NO_IDENTIFIERS = frozenset(
    written
    for word in (*_WORDS, "#div/0!")
    for written in (word, word.upper(), word.capitalize(), "NaN")
)
_ROUNDED = re.compile("[0-9](?:[.,][0-9]{1,20})?[Ee][+][0-9]{1,3}")
_LONGEST_ROUNDED = 30


def is_placeholder_email(email: str) -> bool:
    """True for an address that stands for none.

    >>> is_placeholder_email("NoEmail@example.com")
    True
    >>> is_placeholder_email("robin@example.com")
    False
    """
    folded = email.lower()
    return folded.partition("@")[0] in _LOCAL_PARTS or folded in _ADDRESSES


def is_no_identifier(text: str) -> bool:
    """True for what a spreadsheet or an export has written in the place of an identifier.

    >>> is_no_identifier("1.23457E+11")
    True
    >>> is_no_identifier("#N/A")
    True
    >>> is_no_identifier("E-1001")
    False
    """
    if text in NO_IDENTIFIERS:
        return True
    return "+" in text and len(text) <= _LONGEST_ROUNDED and _ROUNDED.fullmatch(text) is not None
