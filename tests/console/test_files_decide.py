"""A held file at the console: who may decide about it, and what becomes of a late decision."""

import pytest

from frontdesk.files.model import EligibilityFile
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.conftest import SignIn
from tests.factories import Customer
from tests.files.loading import Desk, csv_of, row

MANY = 30
COLUMNS = (*row(1), "email", "expiry_date")


def hold_file(desk: Desk) -> EligibilityFile:
    """A file that would end the access of 30 people today."""
    desk.load(csv_of(map(row, range(MANY))))
    ends = [row(n, expiry_date="2026-11-20") for n in range(MANY)]
    held = desk.load(csv_of(ends, COLUMNS), file_name="gold-11-28.csv")
    assert held.state == "held"
    return held


def path_of(file: EligibilityFile) -> str:
    return f"/console/accounts/{file.account_id}/files/{file.id}"


def test_smoke(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk)
    editor = sign_in(Role.EDITOR, Role.APPROVER)
    path = path_of(held)
    for each in (path.rpartition("/")[0], path, path + "/rows?list=would_lose"):
        editor.open(each)
        print(editor.status, editor.page[editor.page.index("<main") :])
    editor.open(path)
    editor.send(path + "/approve")
    print(editor.status, editor.path)
    desk.work(held)
    editor.open(path + "/undo")
    print(editor.status, editor.page[editor.page.index("<main") :])
    editor.send(path + "/undo")
    print(editor.status, editor.path, editor.page[editor.page.index("<main") :])
    editor.open(path + "/rows?list=ended")
    editor.send(path + "/names", reason="audit", case="C-1")
    print(editor.status, editor.path, editor.page[editor.page.index("<main") :])
    assert 0
