"""What a file's first bytes say of its format, and whether a Content-Type contradicts them (docs/file-formats.md)."""

import codecs
import re
import zlib
from dataclasses import dataclass

from frontdesk.errors import Fault, FrontdeskError, Invalid
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import GZIP_MAGIC, OLE_MAGIC, ZIP_MAGIC, codec_of, known_encoding

# So many bytes are enough to recognise a file.
START_BYTES = 4096
_TEXT_PER_CONTROL = 10

_ANYTHING = frozenset(Format)
_TEXTS = _ANYTHING - {Format.XLSX}
_JSON = frozenset({Format.JSON, Format.JSON_LINES})
_CSV, _LINES = frozenset({Format.CSV}), frozenset({Format.JSON_LINES})
_X12, _XLSX = frozenset({Format.X12}), frozenset({Format.XLSX})

# What content each media type may have. Browsers on Windows call a CSV a workbook; curl calls everything a form unless told.
MEDIA_TYPES: dict[str, frozenset[Format]] = {
    "": _ANYTHING,
    "application/octet-stream": _ANYTHING,
    "binary/octet-stream": _ANYTHING,
    "application/x-www-form-urlencoded": _ANYTHING,
    "application/gzip": _ANYTHING,
    "application/x-gzip": _ANYTHING,
    "text/plain": _TEXTS,
    "text/csv": _CSV,
    "application/csv": _CSV,
    "text/tab-separated-values": _CSV,
    "application/json": _JSON,
    "application/jsonl": _LINES,
    "application/x-jsonlines": _LINES,
    "application/x-ndjson": _LINES,
    "application/edi-x12": _X12,
    "application/x12": _X12,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": _XLSX,
    "application/vnd.ms-excel.sheet.macroenabled.12": _XLSX,
    "application/vnd.ms-excel": _XLSX | _CSV,
}

_NAMES = {
    Format.CSV: "CSV",
    Format.JSON_LINES: "JSON lines",
    Format.JSON: "a JSON array",
    Format.X12: "X12",
    Format.XLSX: "an Excel workbook (.xlsx) or another ZIP archive",
}
_OLD_WORKBOOK = "an older Excel workbook (.xls), or one with a password"
_OTHER_MAGIC = {b"%PDF-": "PDF", b"\x89PNG": "an image", b"\xff\xd8\xff": "an image"}

_ISA = re.compile(r"ISA(?!\w)|isa\W[0-9 ]{2}\W")
# What exports of tables are that call themselves .xls: a web page, XML, a symbolic link file, a document.
_OTHER_TABLE = re.compile(
    r"<(?:\?xml|!doctype|html|head|meta|body|style|table)\b|ID;P(?:WXL|SCALC)|\{\\rtf", re.IGNORECASE
)
_OTHER_TABLE_NAME = "a web page, XML or a document, whatever its name"
_OBJECT, _ARRAY = re.compile(r'\{\s*(?:["}]|$)'), re.compile(r"\[\s*(?:[{\]]|$)")
# Controls that texts don't have. A few stand in damaged texts: their rows are refused one by one.
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f]")


class UnsupportedContent(FrontdeskError, kind="unsupported_media_type"):
    """The content contradicts the type that was declared for it; the sentence names both."""


@dataclass(frozen=True, slots=True)
class DetectedContent:
    """What the content is, as far as its first bytes tell. `format` is None for what is not read, `name` is for messages.
    `is_workbook` is also true for a kind of workbook that is not read, `is_other_table` for a table in another kind of file."""

    format: Format | None
    name: str
    is_workbook: bool = False
    is_other_table: bool = False


def detect_content(start: bytes, encoding: str = "utf-8") -> DetectedContent:
    """What begins with these bytes, packed or not. Text of no other kind is CSV."""
    start = _unpacked(start) if start.startswith(GZIP_MAGIC) else start[:START_BYTES]
    if start.startswith(ZIP_MAGIC):
        return _of(Format.XLSX)
    if start.startswith(OLE_MAGIC):
        return DetectedContent(None, _OLD_WORKBOOK, is_workbook=True)
    for magic, name in _OTHER_MAGIC.items():
        if start.startswith(magic):
            return DetectedContent(None, name)
    text = codecs.decode(start, codec_of(start, encoding), "ignore").lstrip("\ufeff \t\r\n")
    if _ISA.match(text):
        return _of(Format.X12)
    if _OBJECT.match(text):
        return _of(Format.JSON_LINES)
    if _ARRAY.match(text):
        return _of(Format.JSON)
    if _OTHER_TABLE.match(text):
        return DetectedContent(None, _OTHER_TABLE_NAME, is_other_table=True)
    is_binary = len(_CONTROL.findall(text)) * _TEXT_PER_CONTROL > len(text)
    return DetectedContent(None, "binary data") if is_binary else _of(Format.CSV)


def check_start(start: bytes, *, encoding: str, media_type: str = "", format: Format | None = None) -> None:  # noqa: A002
    """Refuse a file by its first START_BYTES, before any of it is stored. With a `format` the media type does not count.

    `media_type` has no parameters, and is in lower case. Raises Invalid for an empty file (`empty`) and an encoding that is
    not read (`unknown_encoding`), UnsupportedContent for a type that the content contradicts.
    """
    try:
        known = known_encoding(encoding)
    except Unreadable as error:
        raise Invalid([Fault("encoding", error.code, error.detail)]) from None
    if not start:
        raise Invalid([Fault("body", "empty", "must be a file; it is empty")])
    found = detect_content(start, known)
    if format is None:
        allowed, said = MEDIA_TYPES.get(media_type, frozenset()), f"Content-Type says {_shown(media_type)}"
    else:
        allowed, said = _XLSX if format is Format.XLSX else _TEXTS, f"format is {format}"
    if found.format not in allowed and not (found.format is None and allowed == _ANYTHING):
        hint = "" if allowed else " The type is none that eligibility files have."
        raise UnsupportedContent(f"The {said}, and the content looks like {found.name}.{hint}")


def _of(format_: Format) -> DetectedContent:
    return DetectedContent(format_, _NAMES[format_], format_ is Format.XLSX)


def _shown(media_type: str) -> str:
    return re.sub("[^a-z0-9.+/-]", "?", media_type[:80])


def _unpacked(start: bytes) -> bytes:
    """The first bytes of gzip's content; none if they are damaged, which the reader will tell."""
    try:
        return zlib.decompressobj(wbits=31).decompress(start, START_BYTES)
    except zlib.error:
        return b""
