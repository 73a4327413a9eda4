"""What a refused value looks like: a clause that is added to the rule's sentence. It names a shape and never repeats the
value (docs/interface.md, Errors)."""

import re
from collections.abc import Iterable
from datetime import date

LONGEST = 40  # of a value that is looked at
_NUMBERS = re.compile(r"([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4}|[0-9]{1,2})(?![0-9])")
_ISO = re.compile("[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
_YEAR_FIRST = re.compile(r"[0-9]{4}[/.][0-9]{1,2}[/.][0-9]{1,2}(?![0-9])")
_MONTH_NAME = re.compile(r"(?:^|[^a-z])(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE)
_EXCEL_SERIAL = re.compile("[1-9][0-9]{4}(?:[.][0-9]+)?")
_EPOCH = re.compile("[0-9]{10}|[0-9]{13}")
_CANADIAN = re.compile("[A-Za-z][0-9][A-Za-z][ -]?[0-9][A-Za-z][0-9]")
_ROUNDED = re.compile("[0-9](?:[.,][0-9]+)?[Ee][+]?[0-9]{1,2}")
_EXTENSION = re.compile(r"[0-9]\D*(?:ext|x|#)\D*[0-9]{1,6}$", re.IGNORECASE)
_YES_NO = {"y", "n", "yes", "no", "t", "f", "0", "1"}


def with_hint(rule: str, hint: str) -> str:
    return f"{rule}; {hint}" if hint else rule


def date_hint(text: str) -> str:
    """Of a text that is no ISO date; "" if it looks like nothing that is known."""
    text = text.strip()[:LONGEST]
    if _ISO.match(text) and not day_exists(text[:10]):
        return "this day does not exist"
    if found := _NUMBERS.match(text):
        return _numbers_hint(*found.groups())
    if _YEAR_FIRST.match(text):
        return "it looks like year/month/day"
    if _EXCEL_SERIAL.fullmatch(text):
        return "it looks like an Excel serial number"
    if re.fullmatch("[0-9]{8}", text):
        return "it looks like a date without hyphens"
    if _EPOCH.fullmatch(text):
        return "it looks like a number of seconds since 1970"
    return "it looks like a date with the name of a month" if _MONTH_NAME.search(text) else ""


def day_exists(day: str) -> bool:
    """Whether the calendar has the day `YYYY-MM-DD`."""
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def _numbers_hint(first: str, second: str, last: str) -> str:
    short = " with a year of two digits" if len(last) <= 2 else ""
    if int(first) > 12 >= int(second):
        return f"it looks like day/month/year{short}"
    if int(second) > 12 >= int(first):
        return f"it looks like month/day/year{short}"
    return f"it looks like month/day/year or day/month/year{short}"


def zip_hint(text: str) -> str:
    digits = text.replace("-", "")
    if re.fullmatch("[0-9]+[.]0+", text):
        return "it looks like a number with decimals"
    if digits.isascii() and digits.isdigit() and len(digits) in (3, 4, 7, 8):
        return "it looks like a zip without its leading zeros"
    return "it looks like a Canadian postal code" if _CANADIAN.fullmatch(text[:LONGEST]) else ""


def phone_hint(text: str) -> str:
    text = text.strip()[:LONGEST]
    digits = sum(letter.isdigit() for letter in text)
    if _ROUNDED.fullmatch(text):
        return "it looks like a number that a spreadsheet has rounded"
    if _EXTENSION.search(text):
        return "it looks like a number with an extension"
    if text.startswith("+") and not text.startswith("+1"):
        return "it looks like a number outside North America"
    return "it looks like a number without its area code" if digits == 7 else ""


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
    return (
        "it looks like a code of digits" if folded.isascii() and folded.isdigit() and len(folded) < 3 else ""
    )
