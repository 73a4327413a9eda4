"""The examples of docs/834.md, executed one after the other: what the guide shows is stored and reported."""

import re
from collections.abc import Iterator
from pathlib import Path

from frontdesk.files.model import EligibilityFile
from tests.files.loading import Desk

GUIDE = (Path(__file__).parents[2] / "docs/834.md").read_text()
FIELDS = ("first_name", "effective_date", "expiry_date", "medical_plan_description")


def examples() -> Iterator[tuple[str, list[list[str]]]]:
    """The segments of each example, and the cells of the table below it."""
    for part in re.split("^### ", GUIDE.partition("\n## Examples\n")[2], flags=re.MULTILINE)[1:]:
        lines = [line for line in part.partition("| external_id |")[2].splitlines() if line.startswith("| W")]
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
    """The table that the guide would show."""
    report: dict[str, list[str]] = {}
    for line in desk.report(file):
        report.setdefault(line["external_id"], []).append(line["code"] or line["outcome"])
    return [
        [key, *(stored[name] or "" for name in FIELDS), ", ".join(report.get(key, ()))]
        for key, stored in sorted(desk.members().items())
    ]


def test_each_example_does_what_its_table_says(desk: Desk) -> None:
    told = [*examples()]
    assert len(told) == 8
    for text, table in told:
        file = desk.load(in_envelope(text, told[0][0]).encode())
        assert shown(desk, file) == sorted(table)
