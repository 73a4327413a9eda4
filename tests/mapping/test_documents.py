"""What the pages about formats say is so."""

import json
import re
from pathlib import Path

from frontdesk import codes
from frontdesk.codes import Code, Where
from frontdesk.eligibility.fields import DROPPED
from frontdesk.formats.source import ENCODINGS, LARGEST_CONTENT, LARGEST_RATIO, LONGEST_LINE
from frontdesk.mapping.parser import MEDICAL_LINES, RULE_PARTS, FileMapping, parse_mapping

DOCS = Path(__file__).parents[2] / "docs"
FORMATS, X12, FILES = (
    (DOCS / name).read_text() for name in ("file-formats.md", "834.md", "files.md")
)


def test_every_code_is_documented_with_its_sentence() -> None:
    listed = [code for code in codes.of(Where.ROW, Where.FILE) if code not in DROPPED.values()]
    assert [code for code in listed if _table_row(code) not in FORMATS + FILES] == []
    [row] = re.findall(r"\| FIELD_dropped \| (.*) FIELD is (.*)\. \|", FILES)
    sentences = {name: code.sentence for name, code in DROPPED.items()}
    assert {name: row[0].replace("FIELD", name) for name in row[1].split(", ")} == sentences


def _table_row(code: Code) -> str:
    return f"| {code} | {code.sentence} |"


def test_every_encoding_and_limit_is_documented() -> None:
    assert [name for name in ENCODINGS if f"`{name}`" not in FORMATS] == ["utf-8", "utf-8-sig"]
    assert f"{LONGEST_LINE:,} characters" in FORMATS
    assert f"{LARGEST_CONTENT // 1024**3} GiB" in FORMATS
    assert f"{LARGEST_RATIO} times" in FORMATS


def test_every_part_of_a_mapping_is_documented_and_the_example_can_be_used() -> None:
    parts = [name.replace("lines", "coverages") for name in FileMapping.__slots__]
    assert [name for name in parts if f"`{name}`" not in FORMATS] == []
    examples = re.findall(r"```json\n(.*?)```", FORMATS, re.DOTALL)
    mappings = [parse_mapping(json.loads(example)) for example in examples]
    assert mappings[0].plans == {"123456001": "gold-2026"}
    used = {word for example in examples for word in re.findall(r'"(\w+)":', example)}
    assert [word for word in RULE_PARTS if f"`{word}`" not in FORMATS or word not in used] == []


def test_the_medical_lines_are_documented() -> None:
    assert ", ".join(MEDICAL_LINES) in X12
