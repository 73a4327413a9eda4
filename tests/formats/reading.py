"""What the tests of the readers share: reading bytes to the end, and 834s put together from their
segments.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, cast

import pytest

from frontdesk.formats.model import Format, Unreadable
from frontdesk.mapping.model import FileHeader, Row, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping

# How the 834s of the tests name their members, unless a test says otherwise.
IDENTIFY = {"identify": "REF*0F+person_code"}
HEADER = "external_id,member_id,first_name,last_name\n"


def read(
    content: bytes | str,
    *,
    mapping: dict[str, Any] | None = None,
    encoding: str = "utf-8",
    format_: Format | None = None,
) -> tuple[FileHeader, list[Row]]:
    """The head and every row."""
    raw = content.encode() if isinstance(content, str) else content
    said = {**(mapping or {}), "834": {**IDENTIFY, **(mapping or {}).get("834", {})}}
    head, rows = open_unread(io.BytesIO(raw), format_, encoding, parse_mapping(said))
    return head, list(read_rows(rows))


def rows_of(content: bytes | str, **options: Any) -> list[Row]:
    return read(content, **options)[1]


def refused(reading: Callable[[], object]) -> tuple[str, str]:
    """The code and the sentence with which the file is refused as a whole."""
    with pytest.raises(Unreadable) as caught:
        reading()
    return caught.value.code, caught.value.detail


def codes(row: Row) -> list[tuple[str, str]]:
    return [(fault.field, fault.code) for fault in row.faults]


def warned(row: Row) -> tuple[str, ...]:
    return tuple(each.code for each in row.warnings)


ISA = (
    "ISA*00*          *00*          *ZZ*SENDER         *ZZ*RECEIVER       "
    "*261120*0800*^*00501*000000007*0*T*:~"
)
GS = "GS*BE*SENDER*RECEIVER*20261120*0800*3*X*005010X220A1~"
MEMBER = (
    "INS*Y*18*021*28*A***FT~REF*0F*FAMILY1~REF*17*01~NM1*IL*1*Sample*Robin*Lee***34*900000001~"
    "PER*IP**TE*6175550100*EM*robin@example.com~N3*1 Example Street~N4*Boston*MA*02134**CY*Suffolk~"
    "DMG*D8*19770111*F~HD*021**HLT*PPO 500~DTP*348*D8*20260101~"
)

HOME = "N3*1 Example Street~N4*Boston*MA*02134~"
ADD = "HD*021**HLT*Gold~DTP*348*D8*20260101~"


def person(first: str = "Robin", born: str = "19770111", **said: str) -> str:
    """An INS loop: relation (INS02), code (INS03), sequence (INS17), family (REF*0F), number
    (references, dates), last name, name (NM1), home (PER, N3 and N4), coverage.
    """
    relation = said.get("relation", "18")
    sequence = f"{'*' * 12}{said['sequence']}" if "sequence" in said else ""
    name = said.get("name", f"NM1*IL*1*{said.get('last', 'Sample')}*{first}~")
    family = said.get("family", "FAMILY1")
    return (
        f"INS*{'Y' if relation == '18' else 'N'}*{relation}*{said.get('code', '021')}*28*A{sequence}~"
        f"{f'REF*0F*{family}~' if family else ''}{said.get('number', '')}{name}"
        f"{said.get('home', HOME)}{f'DMG*D8*{born}*F~' if born else ''}{said.get('coverage', ADD)}"
    )


def child(first: str = "Kim", born: str = "20150203", **said: str) -> str:
    return person(first, born, relation="19", **said)


def transaction(
    *members: str, purpose: str = "2", control: str = "0001", day: str = "20261120"
) -> str:
    """ST to SE with the right count."""
    body = (
        f"ST*834*{control}*005010X220A1~BGN*00*REF1*{day}*0800****{purpose}~"
        f"REF*38*POLICY~N1*P5*Employer*FI*1~N1*IN*Example Mutual*FI*2~{''.join(members)}"
    )
    return f"{body}SE*{body.count('~') + 1}*{control}~"


def interchange(*transactions: str) -> str:
    """An interchange with one group."""
    return f"{ISA}{GS}{''.join(transactions)}GE*{len(transactions)}*3~IEA*1*000000007~"


def file_834(*members: str, purpose: str = "2") -> str:
    return interchange(transaction(*(members or (MEMBER,)), purpose=purpose))


class Pieces(io.RawIOBase):
    """A stream that is made as it is read; `taken` counts the bytes that were asked for."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = b""
        self.taken = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        self._left = self._left or next(self._pieces, b"")
        data = self._left[:size]
        self._left = self._left[size:]
        self.taken += len(data)
        return data


def rows_of_stream(stream: Pieces, *, format_: Format | None = None) -> Iterator[Row]:
    mapping = parse_mapping({"834": IDENTIFY})
    return read_rows(open_unread(cast("BinaryIO", stream), format_, mapping=mapping)[1])
