"""Writes invented members as a file of each format, as a stream."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO
from itertools import islice
from types import MappingProxyType
from typing import BinaryIO

from frontdesk.eligibility.field_kinds import X12_GENDERS
from frontdesk.formats.model import Format
from frontdesk.sandbox.sample_members import COLUMNS, PAYOR

Member = Mapping[str, str]

# The implementation guide asks for no more members in one transaction.
MEMBERS_OF_A_TRANSACTION = 10_000
FILE_DATE = "20260101"
_PIECE = 1000


def write_sample(members: Iterable[Member], format: Format, out: BinaryIO) -> Iterator[int]:  # noqa: A002 - as in rows
    """Write the members; yields the number written so far after every piece."""
    written = 0
    remaining = iter(members)
    writer = _WRITERS[format]()
    while piece := list(islice(remaining, _PIECE)):
        out.write(writer.piece(piece).encode())
        written += len(piece)
        yield written
    out.write(writer.end().encode())


class _Csv:
    def __init__(self) -> None:
        self._header = ",".join(COLUMNS) + "\n"

    def piece(self, members: list[Member]) -> str:
        text = StringIO()
        text.write(self._header)
        self._header = ""
        csv.writer(text, lineterminator="\n").writerows(member.values() for member in members)
        return text.getvalue()

    def end(self) -> str:
        return self._header


class _JsonLines:
    def __init__(self) -> None:
        self._encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode

    def piece(self, members: list[Member]) -> str:
        given = ({name: value for name, value in member.items() if value} for member in members)
        return "".join(self._encode(each) + "\n" for each in given)

    def end(self) -> str:
        return ""


class _X12:
    """One interchange with one group; each transaction holds up to 10,000 members. A piece never
    spans two of them.
    """

    def __init__(self) -> None:
        self._members = 0
        self._segments = 0  # of the open transaction
        self._transactions = 0
        self._head = (
            "ISA*00*          *00*          *ZZ*SAMPLESENDER   *ZZ*FRONTDESK      "
            f"*{FILE_DATE[2:]}*0800*^*00501*000000001*0*T*:~\n"
            f"GS*BE*SAMPLESENDER*FRONTDESK*{FILE_DATE}*0800*1*X*005010X220A1~\n"
        )

    def piece(self, members: list[Member]) -> str:
        text = self._head
        self._head = ""
        if self._members % MEMBERS_OF_A_TRANSACTION == 0:
            text += self._close() + self._open()
        loops = [_loop(member) for member in members]
        self._segments += sum(loop.count("~") for loop in loops)
        self._members += len(members)
        return text + "".join(loops)

    def end(self) -> str:
        return f"{self._head}{self._close()}GE*{self._transactions}*1~\nIEA*1*000000001~\n"

    def _open(self) -> str:
        self._transactions += 1
        header = (
            f"ST*834*{self._transactions:04d}*005010X220A1~\n"
            f"BGN*00*SAMPLE{self._transactions}*{FILE_DATE}*0800****2~\n"
            f"N1*P5*Example Employer*FI*999999999~\nN1*IN*{PAYOR}*FI*888888888~\n"
        )
        self._segments = header.count("~")
        return header

    def _close(self) -> str:
        return (
            f"SE*{self._segments + 1}*{self._transactions:04d}~\n"
            if self._transactions and self._segments
            else ""
        )


_GENDERS = {word: code for code, word in X12_GENDERS.items()}


def _loop(member: Member) -> str:
    family, _, person = member["external_id"].partition("-")
    is_primary = member["subscriber_relationship"] == "Primary"
    contacts = [f"*EM*{member['email']}"] if member["email"] else []
    contacts += [f"*CP*{member['phone']}"] if member["phone"] else []
    expiry = member["expiry_date"]
    return (
        f"INS*{'Y' if is_primary else 'N'}*{member['relationship_code_hipaa']}*021*28*A***FT~\n"
        f"REF*0F*{family}~\nREF*17*{person}~\n"
        f"NM1*IL*1*{member['last_name']}*{member['first_name']}{_tail(member['middle_name'])}~\n"
        + (f"PER*IP*{''.join(contacts)}~\n" if contacts else "")
        + f"N3*1 Example Street~\n"
        f"N4*{member['city']}*{member['state']}*{member['zipcode']}**CY*{member['county']}~\n"
        f"DMG*D8*{_compact(member['dob'])}*{_GENDERS[member['gender']]}~\n"
        f"HD*021**HLT*{member['medical_plan_description']}~\n"
        f"DTP*348*D8*{_compact(member['effective_date'])}~\n"
        + (f"DTP*349*D8*{_compact(expiry)}~\n" if expiry else "")
    )


def _tail(middle_name: str) -> str:
    return f"*{middle_name}" if middle_name else ""


def _compact(day: str) -> str:
    return day.replace("-", "")


_WRITERS: Mapping[Format, Callable[[], "_Csv | _JsonLines | _X12"]] = MappingProxyType(
    {Format.CSV: _Csv, Format.JSON_LINES: _JsonLines, Format.X12: _X12}
)
SAMPLE_FORMATS = tuple(_WRITERS)
