"""The segments of an 834's interchanges: split by the delimiters that each ISA declares, and counted from the first ISA of the
file, which is 1."""

import re
from collections.abc import Callable, Iterator

from frontdesk.formats.model import Unreadable
from frontdesk.formats.source import LONGEST_LINE, Source
from frontdesk.formats.x12_loop import Segment

ISA_LENGTH = 106
_ISA_ELEMENTS = 16
_FILLER = " \t\r\n\x1a\0"  # what old systems put around an interchange
_LAST_SEGMENT = re.compile(r"IEA[^0-9A-Za-z][0-9]{1,5}[^0-9A-Za-z][0-9]{9}", re.IGNORECASE)
# Before one of these, the end of a line is the end of a segment.
_TAGS = "GS|ST|BGN|REF|DTP|N1|INS|NM1|PER|N3|N4|DMG|HD|SE|GE|IEA"
_ISA_WIDTHS = [3, 2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1]


def at_segment(number: int, code: str, message: str) -> Unreadable:
    return Unreadable(code, message, place=number, unit="Segment")


def read_segments(source: Source, note: Callable[[], None] = lambda: None) -> Iterator[tuple[int, Segment]]:
    """Every segment with its number. Line breaks between segments are ignored, and so are space, blank segments, a missing
    terminator at the end of a line or of the file, tags in small letters and an ISA that has lost its padding, which `note` is
    told of. Raises Unreadable.
    """
    text, number = _more(source, "", 1), 0
    while text:
        separator, terminator = _delimiters(text, number + 1, note)
        while text:
            # The begun segment waits for the next block: what follows a line break tells whether it ends there.
            whole, _, rest = text.rpartition(terminator)
            is_ascii = whole.isascii()
            pieces = _without_breaks(whole, separator, terminator, note).split(terminator) if whole else []
            for at, piece in enumerate(pieces):
                if not piece or piece[0] <= " ":
                    note()
                    piece = piece.lstrip()  # noqa: PLW2901 - the segment begins there
                    if not piece:
                        continue
                number += 1
                if not is_ascii and not piece.isascii():
                    source.check(piece, place=number, unit="Segment")
                elements = piece.split(separator)
                if not elements[0].isupper():
                    note()
                    elements[0] = elements[0].upper()
                yield number, elements
                if elements[0] == "IEA":
                    # What follows may declare other delimiters.
                    rest = terminator.join((*pieces[at + 1 :], rest))
                    break
            else:
                text = _following(source, rest, number + 1, terminator, note)
                continue
            text = _more(source, rest, number + 1, terminator)
            break


def _without_breaks(text: str, separator: str, terminator: str, note: Callable[[], None]) -> str:
    """The text without line breaks, of which those after a segment without an end and before the tag of another one become a
    terminator."""
    for line_end in ("\r\n", "\n", "\r"):
        if terminator not in line_end:
            text = text.replace(terminator + line_end, terminator)
    breaks = "\r\n".replace(terminator, "")
    if any(map(text.__contains__, breaks)):
        before, tag = rf"(?<=[^ \t\r\n{re.escape(terminator)}])", rf"(?:{_TAGS}){re.escape(separator)}"
        missing = rf"{before}[ \t]*[{breaks}][ \t{breaks}]*(?={tag})"
        text, count = re.subn(missing, lambda _: terminator, text)
        if count:
            note()
        for character in breaks:
            text = text.replace(character, "")
    return text


def _following(source: Source, rest: str, number: int, terminator: str, note: Callable[[], None]) -> str:
    """The begun segment and the next block of the file. There must be one, since the IEA is yet to come."""
    _bound(rest, number)
    block = source.block()
    if not block and _LAST_SEGMENT.fullmatch(rest.strip(_FILLER)):
        note()
        return rest.rstrip(_FILLER) + terminator
    if not block:
        raise at_segment(number, "cut_off", "the file ends here, before its IEA")
    return rest + block


def _more(source: Source, rest: str, number: int, terminator: str = "") -> str:
    """The rest, long enough for an ISA if the file is; "" if only filler and blank segments are left."""
    while len(text := rest.lstrip(_FILLER + terminator)) < ISA_LENGTH and (block := source.block()):
        _bound(rest, number)
        rest += block
    return text


def _bound(rest: str, number: int) -> None:
    if len(rest) > LONGEST_LINE:
        raise at_segment(
            number, "line_too_long", f"longer than {LONGEST_LINE:,} characters, which no segment needs"
        )


def _delimiters(text: str, number: int, note: Callable[[], None]) -> tuple[str, str]:
    """The element separator and the segment terminator, at fixed places of the ISA."""
    if text[:3].upper() != "ISA":
        raise at_segment(number, "not_x12", "an ISA segment is expected here")
    if len(text) < ISA_LENGTH:
        raise at_segment(number, "cut_off", "the file ends within the ISA")
    separator, terminator = text[3], text[ISA_LENGTH - 1]
    widths = [len(element) for element in text[: ISA_LENGTH - 1].split(separator)]
    if (
        widths == _ISA_WIDTHS
        and terminator != separator
        and not (terminator.isalnum() or separator.isalnum())
    ):
        return separator, terminator
    found = _without_padding(text, separator)
    if not found:
        message = (
            "the ISA is damaged: it must have 16 elements of fixed length, filled up with spaces, and a terminator; "
            "send the file as it was written, not as the text of a mail"
        )
        raise at_segment(number, "not_x12", message)
    note()
    return separator, found


def _without_padding(text: str, separator: str) -> str:
    """The terminator of an ISA that has lost or gained spaces; "" if it is not certain: GS must follow."""
    elements = text[: 2 * ISA_LENGTH].split(separator, _ISA_ELEMENTS)
    if separator.isalnum() or separator.isspace() or len(elements) <= _ISA_ELEMENTS:
        return ""
    *fixed, rest = elements
    terminator = rest[1:2]
    fits = all(len(each.strip()) <= width for each, width in zip(fixed, _ISA_WIDTHS, strict=False))
    follows = rest[2:].lstrip(_FILLER).upper().startswith(("GS" + separator, "TA1" + separator))
    is_sign = terminator not in ("", separator, " ") and not terminator.isalnum()
    return (
        terminator if fits and follows and is_sign and rest[0] != separator and not rest[0].isspace() else ""
    )
