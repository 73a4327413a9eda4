"""The examples of docs/834.md, executed one after the other: what the guide shows is stored and reported."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from frontdesk.files.model import EligibilityFile
from frontdesk.mapping.parser import parse_mapping
from tests.files.loading import Desk

GUIDE = (Path(__file__).parents[2] / "docs/834.md").read_text()
FIELDS = ("first_name", "effective_date", "expiry_date", "medical_plan_description")


def examples() -> Iterator[tuple[str, list[list[str]]]]:
    """The segments of each example, and the cells of the table below it."""
    for part in re.split("^### ", GUIDE.partition("\n## Examples\n")[2], flags=re.MULTILINE)[1:]:
        table = part.partition("|---|---|---|---|---|---|")[2].splitlines()
        lines = [line for line in table if line.startswith("| ")]
        text = part.partition("```x12\n")[2].partition("```")[0]
        yield text, [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def in_envelope(text: str, envelope: str) -> str:
    """The segments of members in the envelope of the first example, with the right count."""
    if text.startswith("ISA"):
        return text
    head, body = envelope.split("INS*", 1)
    tail = body[body.index("SE*") :]
    count = head.count("~") - 2 + text.count("~") + 1
    return head + text + re.sub(r"SE\*[0-9]+", f"SE*{count}", tail)


def shown(desk: Desk, file: EligibilityFile) -> list[list[str]]:
    """The table that the guide would show: the members that the file names."""
    report: dict[str, list[str]] = {}
    for line in desk.report(file):
        report.setdefault(line["external_id"] or "", []).append(line["code"] or line["outcome"])
    stored = desk.members()
    return [
        [key, *(stored.get(key, {}).get(name) or "" for name in FIELDS), ", ".join(codes)]
        for key, codes in sorted(report.items())
    ]


def test_each_example_does_what_its_table_says(desk: Desk) -> None:
    told = [*examples()]
    assert len(told) == 7
    [said] = re.findall("the mapping is `(.*?)`", GUIDE)
    for text, table in told:
        before = desk.members()
        file = desk.load(in_envelope(text, told[0][0]).encode(), mapping=json.loads(said))
        assert shown(desk, file) == sorted(table)
        after, named = desk.members(), {cells[0] for cells in table}
        assert [key for key in before if before[key] != after[key] and key not in named] == []


def test_each_way_on_the_page_can_be_said() -> None:
    ways = re.findall(
        r"^\| (`[^|]*`[^|]*) \| [^|]* \| (?:`[^|]*`)", GUIDE.partition("| way |")[2], re.MULTILINE
    )
    said = [way for cell in ways[:6] for way in re.findall("`([^`]+)`", cell)]
    assert len(said) == 8
    for way in said:
        assert parse_mapping({"834": {"identify": way}}).identify
    example = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)[0]
    assert parse_mapping(json.loads(example)).identify
