"""Where the stored reports of an account's files name a member, and how these lines lose the name.

No index leads from an identifier to the rows of files, so the reports are read: a million rows take about a second.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from frontdesk.db import Tx
from frontdesk.files import store
from frontdesk.files.model import RowOutcome

PARTS_TOGETHER = 16

Ask = Callable[[Callable[[Tx], Any]], Any]


class ReportPart(NamedTuple):
    """A stored part of a file's report: the outcomes of one chunk."""

    file_id: int
    number: int


def find_mentions(
    ask: Ask,
    account_id: int,
    external_ids: Collection[str],
    *,
    after_file: int = 0,
    go_on: Callable[[], None] = lambda: None,
) -> Iterator[ReportPart]:
    """The parts of reports of the account's files after `after_file` that name one of the identifiers, by file and number.

    `ask(question)` runs a question in a transaction; `go_on()` is called between two of them, and may raise.
    """
    sought = [orjson.dumps(external_id) for external_id in external_ids]
    for file_id in ask(lambda tx: store.list_file_ids(tx, account_id, after_id=after_file)):
        after = -1
        while parts := ask(
            lambda tx, file_id=file_id, after=after: store.list_outcome_parts(  # type: ignore[misc]
                tx, file_id, after=after, limit=PARTS_TOGETHER
            )
        ):
            for number, content in parts:
                if any(name in content for name in sought):
                    yield ReportPart(file_id, number)
            after = parts[-1][0]
            go_on()


def erase_mentions(tx: Tx, parts: Collection[ReportPart], external_ids: Collection[str]) -> int:
    """Take the identifiers out of the parts of reports, and forget the digests of their files; how many lines changed.

    A digest of a file is made from all of its rows: of a small file it could be guessed.
    """
    lines = 0
    for file_id, number in parts:
        outcomes = store.find_outcomes(tx, file_id, number) or []
        erased = [_without_name(outcome, external_ids) for outcome in outcomes]
        lines += sum(old is not new for old, new in zip(outcomes, erased, strict=True))
        store.replace_outcomes(tx, file_id, number, erased)
    store.forget_digests(tx, {part.file_id for part in parts})
    return lines


def list_mentions(
    ask: Ask, parts: Collection[tuple[int, int]], external_ids: Collection[str]
) -> Iterator[tuple[int, RowOutcome]]:
    """The lines of the parts, by file and number, that name one of the identifiers, each with the id of its file."""
    for file_id, number in parts:
        outcomes: Sequence[RowOutcome] = ask(
            lambda tx, file_id=file_id, number=number: store.find_outcomes(tx, file_id, number) or []  # type: ignore[misc]
        )
        yield from ((file_id, each) for each in outcomes if each.external_id in external_ids)


def _without_name(outcome: RowOutcome, external_ids: Collection[str]) -> RowOutcome:
    return outcome._replace(external_id=None) if outcome.external_id in external_ids else outcome
