"""The rule of every text: NFC, trimmed, without control characters, up to a largest length."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from urllib.parse import quote

import idna

# Printable ASCII without a space at either end is already in the form that the rule asks for.
_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
# No character is more than four in any form of Unicode: one and the three marks that it takes up.
_LONGEST_DECOMPOSITION = 4
# Trimmed at the ends: white space as Unicode has it (Python counts four control characters more) and invisible characters.
# Inside a name, joiners tell letters apart.
_ASCII_SPACE = " \t\n\v\f\r"
_PYTHONS_SPACE = "\x1c\x1d\x1e\x1f"
_REFUSED_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}  # controls, lone surrogates, line and paragraph separators
# Unicode's property Bidi_Control: these show a text in another order than it is stored in (UTS 39, section 3.1). Names and
# identifiers have none; a mail's template in Arabic may.
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# The start of an encoded word (RFC 2047). A mail program decodes it, line ends and all, so it may not stand in a header: in
# an address or a sender's name.
ENCODED_WORD = "=?"

MESSAGES = {
    "wrong_type": "must be a string",
    "control_character": "must not contain control characters",
    "too_long": "must have at most {limit} characters",
}


class Rejected(Exception):
    """A value breaks a rule. `message` states the rule and never the value; `part` names the place inside the field."""

    def __init__(self, code: str, message: str, *, part: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.part = part


class RejectedParts(Exception):
    """Several places inside one value break rules; each of the `parts` names its own."""

    def __init__(self, parts: Sequence[Rejected]) -> None:
        super().__init__("parts")
        self.parts = tuple(parts)


def parse_text(value: object, *, limit: int) -> str:
    """The text in the form it is stored in; "" when nothing but space is left. Raises Rejected."""
    if type(value) is not str:
        raise Rejected("wrong_type", MESSAGES["wrong_type"])
    if not _PLAIN.fullmatch(value):
        value = trimmed(value)
        if len(value) > limit and _stays_too_long(value, limit):
            raise _too_long(limit)
        value = unicodedata.normalize("NFC", value)
        refuse_control_characters(value)
        if not _BIDI_CONTROLS.isdisjoint(value):
            raise Rejected("control_character", MESSAGES["control_character"])
    if len(value) > limit:
        raise _too_long(limit)
    return value


def trimmed(value: str) -> str:
    """Without white space and invisible characters (U+200B, U+FEFF, …) at either end."""
    if value.isascii():
        return value.strip(_ASCII_SPACE)
    first, end = 0, len(value)
    while first < end and _is_trimmed(value[first]):
        first += 1
    while first < end and _is_trimmed(value[end - 1]):
        end -= 1
    return value[first:end]


def _is_trimmed(character: str) -> bool:
    return (character.isspace() and character not in _PYTHONS_SPACE) or unicodedata.category(
        character
    ) == "Cf"


def _stays_too_long(value: str, limit: int) -> bool:
    """Whether no normalisation brings the text below the limit. Normalising a long run of combining marks takes quadratic
    time, which could be seconds."""
    if len(value) > _LONGEST_DECOMPOSITION * limit:
        return True
    run = staying = 0
    for character in value:
        run = run + 1 if unicodedata.combining(character) else 0
        staying += run >= _LONGEST_DECOMPOSITION
    return staying > limit


def _too_long(limit: int) -> Rejected:
    return Rejected("too_long", MESSAGES["too_long"].format(limit=limit))


def refuse_control_characters(value: str) -> None:
    """Raises Rejected for characters that people can't read or a database can't store (U+0000, lone surrogates, …)."""
    if not value.isprintable() and any(unicodedata.category(c) in _REFUSED_CATEGORIES for c in value):
        raise Rejected("control_character", MESSAGES["control_character"])


def fold_email(email: str) -> str:
    """The compared form of an address: the same for all spellings that are mailed to one place (docs/decisions/0102).

    The local part is composed (NFC), the domain is an IDNA A-label as UTS 46 makes it, both in lower case. Never made by a
    database: its lower() differs.
    """
    if email.isascii():
        return email.lower()
    local, at, domain = email.rpartition("@")
    return f"{unicodedata.normalize('NFC', local).lower()}{at}{_fold_domain(domain)}"


def _fold_domain(domain: str) -> str:
    try:
        return idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:  # nobody can be mailed there
        return unicodedata.normalize("NFKC", domain).lower()


# With hyphens or spaces any area counts, also those of taxpayers' numbers; nine digits alone have to be in the ranges that the
# Social Security Administration issues: no area 000, 666 or 9xx, no group 00, no serial number 0000.
_SSN = re.compile("[0-9]{3}([- ])[0-9]{2}\\1[0-9]{4}|(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}")


def looks_like_ssn(text: str) -> bool:
    """Whether the text looks like a social security number. So do nine of ten numbers of nine digits that are drawn by lot."""
    return _SSN.fullmatch(text) is not None


def are_mostly_ssns(texts: Sequence[str]) -> bool:
    """Whether more than half of the texts look like social security numbers."""
    return sum(map(looks_like_ssn, texts)) * 2 > len(texts)


SHOWN_NAMES, SHOWN_LENGTH = 20, 40


def shown_name(name: str) -> str:
    """A name that a caller chose, fit to be shown: percent-encoded and shortened. Show at most SHOWN_NAMES of them."""
    return quote(name[:SHOWN_LENGTH].encode("utf-8", "replace"), safe="")


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that may have been meant: the same but for signs and letter case, or nearly. None for a longer name than
    is shown, since comparing takes quadratic time."""
    if len(name) > SHOWN_LENGTH:
        return None
    by_folded = {_without_signs(each): each for each in known}
    nearest = get_close_matches(_without_signs(name), by_folded, n=1, cutoff=0.8)
    return by_folded[nearest[0]] if nearest else None


def _without_signs(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
