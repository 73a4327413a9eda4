"""What a refused value looks like: a clause that is added to the rule's sentence. It names a shape and never repeats the
value (docs/interface.md, Errors)."""

import re
from collections.abc import Iterable
from datetime import date

LONGEST = 40  # of a value that is looked at
_NUMBERS = re.compile(r"([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4}|[0-9]{1,2})(?![0-9])")
_ISO = re.compile("[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
_DATES = {
    "[0-9]{4}[/.][0-9]{1,2}[/.][0-9]{1,2}(?![0-9]).*": "year/month/day",
    "[1-9][0-9]{4}(?:[.][0-9]+)?": "an Excel serial number",
    "[0-9]{8}": "a date without hyphens",
    "[0-9]{10}|[0-9]{13}": "a number of seconds since 1970",
    "(?:.*[^a-z])?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).*": "a date with the name of a month",
}
_ZIPS = {
    "[0-9]+[.]0+": "a number with decimals",
    "[0-9]{3,4}(?:-?[0-9]{4})?": "a zip without its leading zeros",
    "[a-z][0-9][a-z][ -]?[0-9][a-z][0-9]": "a Canadian postal code",
}
_PHONES = {
    "[0-9](?:[.,][0-9]+)?e[+]?[0-9]{1,2}": "a number that a spreadsheet has rounded",
    r".*[0-9]\D*(?:ext|x|#)\D*[0-9]{1,6}": "a number with an extension",
    "[+](?!1).*": "a number outside North America",
    r"\D*(?:[0-9]\D*){7}": "a number without its area code",
}
_YES_NO = {"y", "n", "yes", "no", "t", "f", "0", "1"}


def with_hint(rule: str, hint: str) -> str:
    return f"{rule}; {hint}" if hint else rule


def date_hint(text: str) -> str:
    """Of a text that is no ISO date; "" if it looks like nothing that is known."""
    text = text.strip()[:LONGEST]
    if _ISO.match(text) and not day_exists(text[:10]):
        return "this day does not exist"
    if found := _NUMBERS.match(text):
        first, second, year = found.groups()
        short = " with a year of two digits" if len(year) <= 2 else ""
        orders = [
            order
            for order, month in (("month/day/year", first), ("day/month/year", second))
            if int(month) <= 12
        ]
        return f"it looks like {' or '.join(orders or ['a date'])}{short}"
    return _looks_like(_DATES, text)


def day_exists(day: str) -> bool:
    """Whether the calendar has the day `YYYY-MM-DD`."""
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def zip_hint(text: str) -> str:
    return _looks_like(_ZIPS, text)


def phone_hint(text: str) -> str:
    return _looks_like(_PHONES, text)


def email_hint(text: str) -> str:
    if text.count("@") > 1:
        return "it looks like several addresses"
    if text.endswith(">") and "<" in text:
        return "it looks like a name with an address"
    return "" if "@" in text else "it has no @"


def choice_hint(text: str, words: Iterable[str]) -> str:
    """Of a text that is none of the words."""
    folded, known = text.casefold(), [word.casefold() for word in words]
    if "true" in known and folded in _YES_NO:
        return "it looks like yes or no"
    if len(folded) == 1 and any(word.startswith(folded) for word in known):
        return "it looks like the first letter of one of them"
    return _looks_like({"[0-9]{1,2}": "a code of digits"}, folded)


def _looks_like(shapes: dict[str, str], text: str) -> str:
    """The first of the shapes, patterns without letter case, that the whole text has."""
    text = text.strip()[: LONGEST + 1]
    found = (name for shape, name in shapes.items() if re.fullmatch(shape, text, re.IGNORECASE | re.DOTALL))
    return next((f"it looks like {name}" for name in found), "")
