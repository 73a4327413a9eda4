"""The faults of a file by code."""

from dataclasses import replace
from typing import Any

import pytest

from frontdesk import codes
from frontdesk.db import Tx
from frontdesk.files import row_store
from frontdesk.files.faults import group_faults
from tests.files.loading import Desk, csv_of, row


def test_faults_are_grouped_by_code_with_what_to_do_and_the_first_rows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(n) for n in range(60)]
    for n in (3, 13, 23, 33, 43):
        rows[n] |= {"dob": "never"}
    rows[45] |= {"gender": "?", "zipcode": "1"}
    for n in (50, 51):
        rows[n] |= {"email": "none@none.com"}
    desk.options = replace(desk.options, chunk_rows=10)
    file = desk.load(csv_of(rows))
    read: list[int] = []
    original = row_store.chunk_outcomes

    def noted(tx: Tx, id_: int, chunk: int, **more: Any) -> Any:
        read.append(chunk)
        return original(tx, id_, chunk, **more)

    monkeypatch.setattr(row_store, "chunk_outcomes", noted)
    groups = desk.db.ask(lambda tx: group_faults(tx, file))
    assert {group.code: group.lines for group in groups} == file.codes
    assert groups[0].code == codes.faults.NOT_A_DATE
    assert (groups[0].lines, groups[0].fields) == (5, ["dob"])
    assert [line.row for line in groups[0].first] == [5, 15, 25]
    assert groups[0].sentence == codes.faults.NOT_A_DATE.sentence
    assert [group.is_warning for group in groups] == [False, False, False, True]
    assert (groups[-1].lines, [line.row for line in groups[-1].first]) == (2, [52, 53])
    assert len(read) <= 3 + 1 + 1 + 1 + 1  # and not the six of each code


def test_a_code_of_a_list_has_its_remedy(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(3)))
    others = [
        row(n, first_name=f"Else {n}", last_name=f"Other {n}", dob="1990-01-01") for n in range(3)
    ]
    file = desk.load(csv_of(others))
    [group] = desk.db.ask(lambda tx: group_faults(tx, file))
    assert (group.code, group.is_warning) == (codes.rows.IDENTITY_CONFLICT, False)
    assert group.remedy is codes.rows.IDENTITY_CONFLICT.remedy
    assert len(group.first) == 3
