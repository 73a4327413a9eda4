"""Reads the parts of a rule of a mapping: values of untrusted JSON, by the kinds that rules are made of."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from frontdesk.eligibility.values import METADATA_VALUE_LENGTH
from frontdesk.errors import Fault
from frontdesk.files.column_names import COLUMN_NAME, fold_name
from frontdesk.files.date_formats import EXCEL_SERIAL, DateFormat, parse_format
from frontdesk.files.field_rules import Value
from frontdesk.text import shown_name

LONGEST_PAD = LONGEST_JOIN = 20
LONGEST_VALUE = METADATA_VALUE_LENGTH  # no field takes a longer one
MOST_WORDS = 100
MOST_JOINED = MOST_FORMATS = 10  # columns and formats of dates of a rule
_ISO_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


class PartReader:
    """Reads the parts of one rule. What is wrong becomes a fault that names the part and never its value."""

    def __init__(self, place: str, given: Any, known: Iterable[str], faults: list[Fault]) -> None:
        self._place, self._faults = place, faults
        self.given: dict[str, Any] = given if isinstance(given, dict) else {}
        if self.given is not given:
            self.fault("", "wrong_type", "must be an object")
        for name in self.given:
            if name not in known:
                self.fault(shown_name(name), "unknown_field", "there is no such field")

    def fault(self, part: str, code: str, message: str) -> None:
        self._faults.append(Fault(f"{self._place}.{part}".rstrip("."), code, message))

    def text(self, part: str, default: str, longest: int) -> str:
        value = self.given.get(part, default)
        if type(value) is str and len(value) <= longest:
            return value
        self.fault(part, "wrong_type", f"must be a string of at most {longest} characters")
        return default

    def words(self, part: str, *, blank: bool = False, most: int = MOST_WORDS) -> list[str]:
        if part not in self.given:
            return []
        value = self.given[part]
        words = [value] if type(value) is str else value
        if (
            isinstance(words, list)
            and 1 <= len(words) <= most
            and all(type(word) is str and (blank or word.strip()) for word in words)
        ):
            return words
        kind = "string" if blank else "string that is not blank"
        self.fault(part, "wrong_type", f"must be a {kind}, or an array of up to {most} of them")
        return []

    def columns(self) -> tuple[str, ...]:
        """The folded names."""
        names = self.words("column", most=MOST_JOINED)
        if not all(map(COLUMN_NAME.search, names)):
            self.fault("column", "not_allowed", "must be names of columns")
            return ()
        folded = tuple(map(fold_name, names))
        if len(set(folded)) < len(folded):
            self.fault("column", "repeated", "must name each column once")
        return folded

    def number(self, part: str, least: int, most: int) -> int | None:
        if part not in self.given:
            return None
        value = self.given[part]
        if type(value) in (int, float) and value in range(least, most + 1):  # 5.0 is 5 in JSON
            return int(value)
        self.fault(part, "not_allowed", f"must be a whole number from {least} to {most}")
        return least

    def choice(self, part: str, choices: Iterable[str]) -> str | None:
        value = self.given.get(part)
        if part not in self.given or (type(value) is str and value in choices):
            return value
        self.fault(part, "not_allowed", "must be one of " + ", ".join(choices))
        return None

    def constant(self) -> str | None:
        if "constant" not in self.given:
            return None
        value = self.given["constant"]
        if type(value) is bool or (type(value) is str and value.strip() and len(value) <= LONGEST_VALUE):
            return _cell(value)
        rule = f"must be a boolean, or a string that is not blank of at most {LONGEST_VALUE} characters"
        self.fault("constant", "wrong_type", rule)
        return None

    def values(self) -> dict[str, Value]:
        given = self.given.get("values", {})
        if not isinstance(given, dict) or not all(map(_is_value, given.values())):
            rule = f"must be an object of booleans, nulls, and strings of at most {LONGEST_VALUE} characters"
            self.fault("values", "wrong_type", rule)
            return {}
        values: dict[str, Value] = {}
        for word, item in given.items():
            if values.setdefault(word.strip().casefold(), _cell(item)) != _cell(item):
                self.fault("values", "repeated", "must give a word one value, whatever its letter case")
        return values

    def dates(self) -> Iterator[DateFormat]:
        for word in self.words("dates", most=MOST_FORMATS):
            if (parsed := parse_format(word)) is not None:
                yield parsed
            else:
                rule = (
                    f"must be {EXCEL_SERIAL}, or YYYY or YY, MM or MON, and DD with - / . , or spaces between"
                )
                self.fault("dates", "not_allowed", rule)

    def open_dates(self) -> Iterator[str]:
        for word in self.words("open"):
            if _ISO_DATE.fullmatch(word) and _is_date(word):
                yield word
            else:
                self.fault("open", "not_a_date", "must be dates, YYYY-MM-DD")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_value(value: object) -> bool:
    is_text = type(value) is str and len(value) <= LONGEST_VALUE
    return is_text or value is None or type(value) is bool


def _cell(value: str | bool | None) -> Value:
    return str(value).lower() if isinstance(value, bool) else value
