"""A second opinion on X12: pyx12 splits a file into the same segments and finds the same counts wrong."""

import io
from importlib import import_module
from typing import Any

import pytest

from frontdesk.formats.model import Format
from frontdesk.formats.source import open_source
from frontdesk.formats.x12 import SegmentReader
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import sample_members
from tests.formats.reading import MEMBER, file_834, read, refused

x12file: Any = import_module("pyx12.x12file")  # comes without types

GOOD = file_834(MEMBER, MEMBER)


def asked(text: str) -> tuple[list[list[str]], list[str]]:
    """pyx12's segments and the codes of what it finds wrong."""
    reader = x12file.X12Reader(io.StringIO(text))
    segments = [segment.format("", "*", ":").split("*") for segment in reader]
    reader.cleanup()
    return segments, [str(error[1]) for error in reader.pop_errors()]


def trimmed(segments: list[list[str]]) -> list[list[str]]:
    """Without empty elements at the end, which mean nothing."""
    return [("*".join(segment)).rstrip("*").split("*") for segment in segments]


def ours(text: str) -> list[list[str]]:
    _, source, _ = open_source(io.BytesIO(text.encode()))
    assert source is not None
    found: list[list[str]] = []
    for _, segment, family in SegmentReader(source):
        texts = family.text.split(family.terminator) if family else []
        found += [text.split("*") for text in texts] or [segment]
    return found


def sample() -> str:
    out = io.BytesIO()
    list(write_sample(sample_members(300, seed=5), Format.X12, out))
    return out.getvalue().decode()


@pytest.mark.parametrize(
    "text", [GOOD, GOOD.replace("~", "~\n"), sample()], ids=["one line", "lines", "sample"]
)
def test_the_segments_are_the_same_and_nothing_is_wrong(text: str) -> None:
    segments, wrong = asked(text)
    assert trimmed(ours(text)) == trimmed(segments)
    assert wrong == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SE*26*", "SE*25*"),
        ("SE*26*0001", "SE*26*0002"),
        ("GE*1*3", "GE*2*3"),
        ("GE*1*3", "GE*1*4"),
        ("IEA*1*", "IEA*2*"),
        ("IEA*1*000000007", "IEA*1*000000008"),
    ],
)
def test_a_wrong_count_is_wrong_for_both(old: str, new: str) -> None:
    text = GOOD.replace(old, new)
    assert text != GOOD
    assert asked(text)[1] != []
    assert refused(lambda: read(text))[0] == "wrong_count"
