"""Workbooks that nobody should send: refused by a code, in bounded memory, with nothing of them
run, fetched or repeated.
"""

import io
import os
import re
import signal
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from frontdesk.errors import Unavailable
from frontdesk.mapping.model import Row, read_rows
from frontdesk.mapping.opening import open_unread
from tests.formats.reading import refused, rows_of
from tests.formats.workbooks import GOOD, MAIN, cell, raw_workbook, sheet_xml

CANARY = "Canary-Person"
E1 = [Row(2, {"external_id": "E1", "city": "Boston"})]
STRINGS = "xl/sharedStrings.xml"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENTITIES = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "'
    + "a" * 99
    + '">'
    + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 99}">'
        for before, name in zip("abcdef", "bcdefg", strict=True)
    )
    + "]>"
)


def zip_of(**parts: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return out.getvalue()


def shared_strings(text: str, count: int = 1) -> str:
    return f'<sst xmlns="{MAIN}">{f"<si><t>{text}</t></si>" * count}</sst>'


def far_away(reference: str) -> str:
    row = re.sub("[A-Z]", "", reference)
    return GOOD.replace("</sheetData>", f'<row r="{row}">{cell(reference, "x")}</row></sheetData>')


def with_password_flag(content: bytes) -> bytes:
    """The ZIP says of each part that it is encrypted."""
    raw = bytearray(content)
    for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        for found in re.finditer(re.escape(mark), content):
            raw[found.start() + at] |= 1
    return bytes(raw)


def with_wrong_size(content: bytes) -> bytes:
    """The directory says of the sheet that it is tiny, so that a limit on declared sizes would let
    it pass.
    """
    raw = bytearray(content)
    at = content.rindex(b"xl/worksheets/sheet1.xml") - 46
    raw[at + 24 : at + 28] = struct.pack("<I", 100)
    return bytes(raw)


WIDE = sheet_xml(f'<row r="1">{cell("A1", "external_id")}' + "<c><v>1</v></c>" * 68_000 + "</row>")
MANY_STRINGS = sheet_xml(
    *(f'<row r="{n}">' + '<c t="s"><v>0</v></c>' * 20 + "</row>" for n in range(1, 3000))
)

HOSTILE: list[tuple[str, Callable[[], bytes], str]] = [
    ("a ZIP without a workbook", lambda: zip_of(a=b"external_id\n1\n"), "not_workbook"),
    ("a binary workbook", lambda: zip_of(**{"xl/workbook.bin": b""}), "not_workbook"),
    ("an empty ZIP's head", lambda: b"PK\x03\x04", "bad_workbook"),
    ("cut off", lambda: raw_workbook()[:-40], "bad_workbook"),
    (
        "damaged parts",
        lambda: raw_workbook(GOOD * 9)[:1200] + bytes(50) + raw_workbook(GOOD * 9)[1250:],
        "bad_workbook",
    ),
    ("another size in the directory", lambda: with_wrong_size(raw_workbook(GOOD)), "bad_workbook"),
    ("encrypted parts", lambda: with_password_flag(raw_workbook()), "encrypted_workbook"),
    ("an old workbook", lambda: OLE + bytes(4096), "old_workbook"),
    ("a bomb", lambda: raw_workbook(GOOD.replace("Boston", " " * 40_000_000)), "zip_bomb"),
    (
        "a bomb of strings",
        lambda: raw_workbook(parts={STRINGS: shared_strings(" " * 40_000_000)}),
        "zip_bomb",
    ),
    (
        "entities in a sheet",
        lambda: raw_workbook(ENTITIES + GOOD.replace("Boston", "&g;")),
        "bad_workbook",
    ),
    (
        "entities in strings",
        lambda: raw_workbook(parts={STRINGS: ENTITIES + shared_strings("&g;")}),
        "bad_workbook",
    ),
    (
        "entities in the book",
        lambda: raw_workbook(parts={"xl/workbook.xml": ENTITIES + "<a>&g;</a>"}),
        "bad_workbook",
    ),
    (
        "a file of the host",
        lambda: raw_workbook(
            '<!DOCTYPE x [<!ENTITY g SYSTEM "file:///etc/passwd">]>' + GOOD.replace("Boston", "&g;")
        ),
        "bad_workbook",
    ),
    (
        "a cell in the last column of the last row",
        lambda: raw_workbook(far_away("XFD1048576")),
        "sheet_too_large",
    ),
    (
        "a cell outside any sheet",
        lambda: raw_workbook(far_away("ZZZZZZ99999999")),
        "sheet_too_large",
    ),
    ("columns without end", lambda: raw_workbook(WIDE), "line_too_long"),
    (
        "a sheet without a table",
        lambda: raw_workbook(f'<worksheet xmlns="{MAIN}"/>'),
        "bad_workbook",
    ),
    (
        "a table that does not end",
        lambda: raw_workbook(GOOD.partition("</sheetData>")[0]),
        "bad_workbook",
    ),
    (
        "a string that is not there",
        lambda: raw_workbook(GOOD.replace('t="str"', 't="s"')),
        "bad_workbook",
    ),
    (
        "a sheet outside the package",
        lambda: raw_workbook(
            parts={
                "xl/_rels/workbook.xml.rels": (
                    '<Relationships><Relationship Id="rId1" Type="/worksheet" '
                    'Target="../../../../etc/passwd"/></Relationships>'
                )
            }
        ),
        "bad_workbook",
    ),
    (
        "two parts of one name",
        lambda: raw_workbook(parts={"XL/Worksheets/Sheet1.xml": GOOD}),
        "bad_workbook",
    ),
    (
        "no header",
        lambda: raw_workbook(sheet_xml(f'<row r="1">{cell("A1", CANARY)}</row>')),
        "no_header",
    ),
]


@pytest.mark.parametrize(("what", "content", "code"), HOSTILE)
def test_it_is_refused_by_a_code_and_not_repeated(
    what: str, content: Callable[[], bytes], code: str
) -> None:
    found, said = refused(lambda: rows_of(content()))
    assert found == code, said
    assert CANARY not in said


@pytest.mark.parametrize(
    "parts",
    [
        {"xl/vbaProject.bin": OLE + b"Sub Auto_Open()"},
        {"xl/externalLinks/externalLink1.xml":
         '<externalLink><externalBook r:id="http://127.0.0.1:9/"/></externalLink>'},
        {"xl/connections.xml":
         '<connections><connection><webPr url="http://127.0.0.1:9/"/></connection></connections>'},
        {"xl/worksheets/_rels/sheet1.xml.rels":
         '<Relationships><Relationship Target="http://127.0.0.1:9/"/></Relationships>'},
    ],
    ids=["macros", "a linked book", "a query", "a link"],
)  # fmt: skip
def test_what_is_beside_the_cells_is_not_even_unpacked(parts: dict[str, str | bytes]) -> None:
    bomb = {"docProps/thumbnail.jpeg": b"\0" * 40_000_000}
    assert rows_of(raw_workbook(parts={**parts, **bomb})) == E1
    formula = GOOD.replace("<v>Boston</v>", "<f>WEBSERVICE(&quot;http://127.0.0.1:9/&quot;)</f>")
    assert rows_of(raw_workbook(formula, parts)) == [Row(2, {"external_id": "E1"})]


def test_the_process_has_limits_of_its_own_and_no_more_memory_than_they_allow(
    tmp_path: Path,
) -> None:
    """The strings need 1.5 GB; the parent measures what its child took at most."""
    path = tmp_path / "large.xlsx"
    path.write_bytes(raw_workbook(MANY_STRINGS, {STRINGS: shared_strings("external_id " * 2730)}))
    script = (
        "import resource, sys; from frontdesk.mapping.opening import open_unread\n"
        "from frontdesk.formats.model import Unreadable\n"
        "try: open_unread(open(sys.argv[1], 'rb'))\n"
        "except Unreadable as error: print(error.code, "
        "resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    )
    code, kib = ran.stdout.split()
    assert code == "sheet_too_large"
    assert int(kib) < 1024 * 1024


def test_a_process_that_is_ended_from_outside_is_no_fault_of_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def and_kill(*arguments: object, **options: object) -> object:
        started.append(popen(*arguments, **options))  # type: ignore[call-overload]
        os.kill(started[-1].pid, signal.SIGKILL)
        return started[-1]

    monkeypatch.setattr("frontdesk.formats.workbook.subprocess.Popen", and_kill)
    with pytest.raises(Unavailable):
        open_unread(io.BytesIO(raw_workbook()))


def test_no_process_is_left_behind_when_the_reading_stops_early() -> None:
    rows = [
        f'<row r="{n}">{cell(f"A{n}", "external_id" if n == 1 else f"E{n}")}</row>'
        for n in range(1, 9000)
    ]
    reading = read_rows(open_unread(io.BytesIO(raw_workbook(sheet_xml(*rows))))[1])
    assert next(reading).values == {"external_id": "E2"}
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text().split()
    del reading
    assert len(children.read_text().split()) == len(before) - 1
