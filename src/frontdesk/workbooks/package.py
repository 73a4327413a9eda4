"""The parts of a workbook, unpacked within limits, and the sheet that is wanted."""

import posixpath
import zipfile
from typing import IO, NamedTuple
from xml.etree import ElementTree as ET

WORKBOOK, STRINGS, STYLES = "xl/workbook.xml", "xl/sharedstrings.xml", "xl/styles.xml"


class WorkbookFault(Exception):
    """The sheet can't be read: a code of files.model, a message, and the row."""


class WorkbookLimits(NamedTuple):
    """Unpacked bytes; unpacked bytes per packed one, which count from so many on; letters of a row."""

    unpacked: int
    ratio: int
    ratio_from: int
    row: int


class WorkbookPackage:
    """The parts of the workbook, by name in lower case."""

    def __init__(self, stream: IO[bytes], limits: WorkbookLimits) -> None:
        self._zip = zipfile.ZipFile(stream)
        self._parts = {info.filename.lower().lstrip("/"): info for info in self._zip.infolist()}
        if len(self._parts) != len(self._zip.infolist()):
            raise WorkbookFault("bad_workbook", "Two parts of the workbook have the same name.", None)
        self._limits, self._packed, self._unpacked = limits, 0, 0
        if WORKBOOK not in self._parts:
            raise WorkbookFault(
                "not_workbook",
                "The file is a ZIP archive, and no workbook (.xlsx). Save it as .xlsx or as CSV.",
                None,
            )

    def has(self, name: str) -> bool:
        return name.lower() in self._parts

    def open(self, name: str) -> IO[bytes]:
        """The part, of which no more can be read than its size, which is checked here."""
        info = self._parts.get(name.lower())
        if info is None:
            raise WorkbookFault("bad_workbook", "The workbook names a part that it does not have.", None)
        if info.flag_bits & 1:
            raise WorkbookFault(
                "encrypted_workbook", "The workbook has a password. Save it without one.", None
            )
        self._packed += info.compress_size
        self._unpacked += info.file_size
        limits = self._limits
        if self._unpacked > limits.unpacked:
            raise WorkbookFault(
                "too_large", f"The workbook unpacks to more than {limits.unpacked:,} bytes.", None
            )
        if self._unpacked > max(limits.ratio_from, limits.ratio * self._packed):
            message = (
                f"The workbook unpacks to more than {limits.ratio} times its size: no list of members does."
            )
            raise WorkbookFault("zip_bomb", message, None)
        return self._zip.open(info)

    def size(self, name: str) -> int:
        return self._parts[name].file_size if name in self._parts else 0

    def read(self, name: str) -> bytes:
        with self.open(name) as part:
            return part.read()


def sheet_part(package: WorkbookPackage, wanted: str | None) -> tuple[str, bool]:
    """The name of the sheet's part, and whether days are counted from 1904. Without `wanted` the first sheet that is shown."""
    book = _parsed(package.read(WORKBOOK))
    relations = {
        relation.get("Id"): relation
        for relation in _parsed(package.read("xl/_rels/workbook.xml.rels"))
        if (relation.get("Type") or "").endswith("/worksheet")
    }
    sheets = [
        (sheet.get("name"), sheet.get("state"), relations[identifier])
        for sheet in book.iter()
        if sheet.tag.rpartition("}")[2] == "sheet"
        and (identifier := next((v for k, v in sheet.items() if k.endswith("}id")), None)) in relations
    ]
    if wanted is None:
        shown = [found for found in sheets if found[1] in (None, "visible")] or sheets
    else:
        shown = [
            found for found in sheets if (found[0] or "").strip().casefold() == wanted.strip().casefold()
        ]
    if not shown:
        message = (
            "The workbook has no sheet."
            if wanted is None
            else "The workbook has no sheet of the name that the mapping or the upload gives."
        )
        raise WorkbookFault("no_sheet", message, None)
    target = shown[0][2].get("Target") or ""
    settings = next((each for each in book.iter() if each.tag.rpartition("}")[2] == "workbookPr"), None)
    is_1904 = settings is not None and settings.get("date1904") in ("1", "true")
    return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/"), is_1904


def refuse_entities(content: bytes) -> None:
    """Raises WorkbookFault for a declaration of entities, with which a short text can become a long one."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise WorkbookFault(
            "bad_workbook", "The workbook declares entities, which no spreadsheet program writes.", None
        )


def _parsed(content: bytes) -> ET.Element:
    refuse_entities(content)
    return ET.fromstring(content)  # noqa: S314 - without entities there is nothing to expand
