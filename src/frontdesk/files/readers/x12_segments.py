"""Segments of an X12 file, one after another, split by the delimiters that each ISA declares; no segment's meaning is known.

A segment is a list of its elements, the tag first. Segments are counted from the first ISA of the file, which is 1.
"""

from collections.abc import Iterator

from frontdesk.files.model import Unreadable
from frontdesk.files.readers.source import LONGEST_LINE, Source

Segment = list[str]

ISA_LENGTH = 106
_FILLER = " \t\r\n\x1a\0"  # what old systems put around an interchange
_ISA_WIDTHS = [3, 2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1]


def read_segments(source: Source) -> Iterator[tuple[int, Segment]]:
    """Every segment with its number. Raises Unreadable. Line breaks between segments are forgiven."""
    text, number = _more(source, "", 1), 0
    while text:
        separator, terminator = _delimiters(text, number + 1)
        breaks = [character for character in "\r\n" if character != terminator]
        while text:
            for character in breaks:
                text = text.replace(character, "")
            *pieces, rest = text.split(terminator)
            for at, piece in enumerate(pieces):
                number += 1
                if not piece.isascii():
                    source.check(piece, place=number, unit="Segment")
                yield number, piece.split(separator)
                if piece.startswith("IEA"):
                    # What follows may declare other delimiters.
                    rest = terminator.join((*pieces[at + 1 :], rest))
                    break
            else:
                text = _following(source, rest, number + 1)
                continue
            text = _more(source, rest, number + 1)
            break


def _following(source: Source, rest: str, number: int) -> str:
    """The begun segment and the next piece of the file; there must be one, since the IEA is yet to come."""
    _bound(rest, number)
    block = source.block()
    if not block:
        message = "the file ends here, before its IEA"
        raise Unreadable("cut_off", message, place=number, unit="Segment")
    return rest + block


def _more(source: Source, rest: str, number: int) -> str:
    """The rest, long enough for an ISA if the file is; "" when nothing but filler is left."""
    while len(text := rest.lstrip(_FILLER)) < ISA_LENGTH and (block := source.block()):
        _bound(rest, number)
        rest += block
    return text


def _bound(rest: str, number: int) -> None:
    if len(rest) > LONGEST_LINE:
        message = f"longer than {LONGEST_LINE:,} characters, which no segment needs"
        raise Unreadable("line_too_long", message, place=number, unit="Segment")


def _delimiters(text: str, number: int) -> tuple[str, str]:
    """The element separator and the segment terminator, by their places in the ISA, whose length is fixed."""
    if not text.startswith("ISA"):
        message = "an ISA segment is expected here"
        raise Unreadable("not_x12", message, place=number, unit="Segment")
    if len(text) < ISA_LENGTH:
        raise Unreadable("cut_off", "the file ends within the ISA", place=number, unit="Segment")
    separator, terminator = text[3], text[ISA_LENGTH - 1]
    widths = [len(element) for element in text[: ISA_LENGTH - 1].split(separator)]
    if widths != _ISA_WIDTHS or terminator == separator or terminator.isalnum() or separator.isalnum():
        message = "the ISA is damaged: it must have 16 elements of fixed length and a terminator"
        raise Unreadable("not_x12", message, place=number, unit="Segment")
    return separator, terminator
