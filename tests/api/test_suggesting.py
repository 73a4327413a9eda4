"""A suggestion is made in a process of its own, with limits: what it gives, and how its end is told."""

import json
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from frontdesk.api import suggesting
from frontdesk.api.suggesting import suggest_apart
from frontdesk.errors import Unavailable
from frontdesk.formats.model import Format, Unreadable
from tests.files.exports import hr_export
from tests.formats.workbooks import workbook
from tests.mapping.test_suggest import suggested


def asked(content: bytes, **options: Any) -> dict[str, Any]:
    told = {"format": None, "encoding": "utf-8", "sheet": None, "is_cut": False} | options
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return suggest_apart(file, today="2026-11-22", **told)


def test_another_process_suggests_the_same() -> None:
    assert asked(hr_export()) == suggested(hr_export())
    sheets = {"Notes": [["A list"]], "People": [["Employee ID", "DOB"], ["1", "1977-01-13"]]}
    content = workbook([], sheets=sheets)
    assert asked(content, format=Format.XLSX, sheet="People") == suggested(content, sheet="People")


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "empty"), (b"1,Robin\n2,Lee\n", "no_header"), (b"PK\x03\x04rest", "bad_workbook")],
)
def test_a_file_that_cannot_be_read_is_refused_for_its_own_fault(content: bytes, code: str) -> None:
    with pytest.raises(Unreadable) as caught:
        asked(content)
    assert caught.value.code == code


def test_a_file_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggesting, "SECONDS", 0.01)
    with pytest.raises(Unreadable) as caught:
        asked(hr_export())
    assert (caught.value.code, "first 100 rows" in caught.value.detail) == ("too_large", True)


@pytest.mark.parametrize(
    ("name", "error"),
    [("XCPU", Unreadable), ("ABRT", Unreadable), ("KILL", Unavailable), ("TERM", Unavailable)],
)
def test_the_file_is_refused_for_a_limit_and_not_for_an_end_from_outside(
    name: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = subprocess.Popen

    def start(_command: Any, **options: Any) -> Any:
        return started(["/bin/sh", "-c", f"kill -s {name} $$"], **options)

    monkeypatch.setattr("subprocess.Popen", start)
    with pytest.raises(error):
        asked(b"x")


LARGE = f"""
from frontdesk.api import suggesting
suggesting.suggest_mapping = lambda *_, **__: bytearray({4 * suggesting.MEMORY_BYTES})
suggesting.main()
"""


def test_the_process_gets_no_more_memory_than_its_limit() -> None:
    command = [sys.executable, "-c", LARGE, json.dumps({"format": None})]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    assert json.loads(ended.stdout)[0] == "too_large"
