"""Workbooks for tests: their parts as Excel writes them, or as nobody should."""

import io
import zipfile
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"

HEADER = ("external_id", "first_name", "last_name", "zipcode", "dob", "invite_immediately")

# Formats 14, 22 and 20 are a date, a date with a time, a time.
_FORMATS = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22, 20))
_STYLES = f'<styleSheet xmlns="{MAIN}"><cellXfs>{_FORMATS}</cellXfs></styleSheet>'

_FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook knows no zones
_DAYS_TO_1904 = 1462


class Formula(NamedTuple):
    """A formula with the value that was calculated last; `kind` is `str`, or `e` for an error."""

    text: str
    value: str
    kind: str = "str"


def workbook(
    rows: Sequence[Sequence[Any]],
    *,
    sheets: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    hidden: Collection[str] = (),
    is_1904: bool = False,
) -> bytes:
    """A workbook with the rows on its first sheet, `Members`, unless `sheets` has all of them.
    `None` is a blank cell.
    """
    all_sheets = sheets or {"Members": rows}
    strings: dict[str, int] = {}
    book = ""
    relations = ""
    parts = {}
    for number, (name, content) in enumerate(all_sheets.items(), 1):
        state = ' state="hidden"' if name in hidden else ""
        book += f'<sheet name="{name}" sheetId="{number}"{state} r:id="rId{number}"/>'
        relations += (
            f'<Relationship Id="rId{number}" Type="{OFFICE}/worksheet" '
            f'Target="/xl/worksheets/s{number}.xml"/>'
        )
        lines = [
            row_xml(place, cells, strings, is_1904=is_1904)
            for place, cells in enumerate(content, 1)
        ]
        parts[f"xl/worksheets/s{number}.xml"] = sheet_xml(*lines)
    settings = f'<workbookPr date1904="{int(is_1904)}"/>'
    return raw_workbook(
        parts={
            **parts,
            "xl/workbook.xml": (
                f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">{settings}<sheets>{book}</sheets>'
                "</workbook>"
            ),
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELATIONS}">{relations}</Relationships>',
            "xl/styles.xml": _STYLES,
            "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">'
            + "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in strings)
            + "</sst>",
        }
    )


def row_xml(place: int, cells: Sequence[Any], strings: dict[str, int], *, is_1904: bool) -> str:
    content = "".join(
        _cell(place, number, value, strings, is_1904=is_1904) for number, value in enumerate(cells)
    )
    return f'<row r="{place}">{content}</row>'


def _cell(row: int, column: int, value: Any, strings: dict[str, int], *, is_1904: bool) -> str:
    reference = f"{chr(64 + column // 26) if column > 25 else ''}{chr(65 + column % 26)}{row}"
    match value:
        case None:
            return f'<c r="{reference}" s="1"/>'
        case Formula():
            formula = f"<f>{escape(value.text)}</f><v>{value.value}</v>"
            return f'<c r="{reference}" t="{value.kind}">{formula}</c>'
        case str():
            return cell(reference, str(strings.setdefault(value, len(strings))), 't="s"')
        case bool():
            return cell(reference, str(int(value)), 't="b"')
        case time():
            return cell(reference, repr((value.hour * 60 + value.minute) / 1440), 's="3"')
        case date():
            moment = datetime(*value.timetuple()[:6])  # noqa: DTZ001
            days = (moment - _FIRST_DAY).total_seconds() / 86_400 - _DAYS_TO_1904 * is_1904
            return cell(reference, repr(days), 's="2"' if isinstance(value, datetime) else 's="1"')
    return cell(reference, repr(value), "")


def cell(reference: str, text: str, attributes: str = 't="str"') -> str:
    return f'<c r="{reference}" {attributes}><v>{text}</v></c>'


def sheet_xml(*rows: str) -> str:
    return f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(rows)}</sheetData></worksheet>'


GOOD = sheet_xml(
    f'<row r="1">{cell("A1", "external_id")}{cell("B1", "city")}</row>',
    f'<row r="2">{cell("A2", "E1")}{cell("B2", "Boston")}</row>',
)


def raw_workbook(
    sheet: str | bytes = GOOD, parts: Mapping[str, str | bytes] | None = None
) -> bytes:
    """A workbook of these parts, deflated; those that are not given are good ones."""
    texts: dict[str, str | bytes] = {
        "[Content_Types].xml": (
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
        ),
        "_rels/.rels": f'<Relationships xmlns="{RELATIONS}"/>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="Members" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" '
        f'Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": sheet,
        **(parts or {}),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in texts.items():
            made.writestr(name, text)
    return out.getvalue()
