"""The words of every state of a file."""

from typing import Any

import pytest

from frontdesk.codes import Remedy
from frontdesk.codes.files import BRAKES, NEEDS_MAPPING
from frontdesk.console import file_words
from frontdesk.console.file_words import label_of, numbers_of, remedy_words, state_words
from frontdesk.files.model import COUNTS, EligibilityFile, FileState, FileStep
from frontdesk.formats.model import FileMode
from tests.factories import NOW

LOST = {"code": "too_many_lose_access", "message": "", "place": None}


def file_of(**changes: Any) -> EligibilityFile:
    values: dict[str, Any] = dict.fromkeys(EligibilityFile.__slots__)
    values |= {"id": 1, "account_id": 1, "plan_id": 1, "mode": FileMode.CHANGE, "epoch": 1}
    values |= {"dry_run": False, "state": FileState.DONE, "step": FileStep.CHECK, "approved": False}
    values |= {"size_bytes": 0, "rows_done": 0, "chunks_done": 0, "counts": {}, "codes": {}}
    values |= {"ignored": [], "client": "client", "request_id": "request", "created_at": NOW}
    return EligibilityFile(**(values | changes))


HELD = {"state": FileState.HELD, "problem": LOST, "shown": {"too_many_lose_access": 1187}}
RUNNING = {"state": FileState.RUNNING, "started_at": NOW}


@pytest.mark.parametrize(
    ("changes", "tone", "words"),
    [
        ({"state": FileState.RECEIVING}, "plain", "Arriving"),
        ({"state": FileState.WAITING}, "plain", "Waiting"),
        ({"state": FileState.WAITING, "started_at": NOW}, "plain", "Waits for its turn"),
        (
            {"state": FileState.WAITING, "started_at": NOW, "approved": True},
            "plain",
            "Approved, waits for a worker",
        ),
        (RUNNING, "plain", "Checking"),
        (RUNNING | {"rows_checked": 48_200}, "plain", "Checking row 48,200"),
        (
            RUNNING | {"step": FileStep.APPLY, "rows_checked": 48_200},
            "plain",
            "Deciding what it would do, row 48,200",
        ),
        (
            RUNNING | {"undoes_id": 1, "rows_checked": 7},
            "plain",
            "Looking at what the undo would do, row 7",
        ),
        (RUNNING | {"step": FileStep.APPLY}, "plain", "Deciding what it would do"),
        (RUNNING | {"step": FileStep.APPLY, "rows_done": 5}, "plain", "Applying"),
        (RUNNING | {"step": FileStep.END}, "plain", "Ending the people that it omits"),
        (RUNNING | {"undoes_id": 1}, "plain", "Looking at what the undo would do"),
        (RUNNING | {"undoes_id": 1, "step": FileStep.APPLY}, "plain", "Taking back"),
        (RUNNING | {"dry_run": True}, "plain", "Dry run: checking"),
        (HELD, "warn", "Held: 1,187 people would lose access"),
        (HELD | {"problem": LOST | {"code": NEEDS_MAPPING}}, "warn", "Held: it needs a mapping"),
        (
            HELD | {"problem": LOST | {"code": "of_another_version"}},
            "warn",
            "Held: a person has to look at it",
        ),
        ({}, "good", "Done"),
        ({"counts": {"refused": 1}}, "warn", "Done, 1 row refused"),
        ({"counts": {"refused": 1200}}, "warn", "Done, 1,200 rows refused"),
        ({"dry_run": True}, "good", "Dry run: done"),
        (
            HELD | {"state": FileState.DONE, "dry_run": True},
            "warn",
            "Dry run: it would be held: 1,187 people would lose access",
        ),
        ({"state": FileState.FAILED}, "bad", "Failed"),
        ({"state": FileState.CANCELLED}, "plain", "Cancelled"),
    ],
)
def test_a_state_in_words(changes: dict[str, Any], tone: str, words: str) -> None:
    assert state_words(file_of(**changes)) == (tone, words)


def test_a_file_that_was_taken_back() -> None:
    undo = file_of(rows_total=54, counts={"withdrawn": 54})
    assert state_words(file_of(), undone_by=undo) == ("plain", "Undone")
    cancelled = file_of(state=FileState.CANCELLED)
    assert state_words(cancelled, undone_by=undo) == ("plain", "Cancelled, and undone")


def test_a_file_of_which_an_undo_has_refused_rows_is_not_said_to_be_undone() -> None:
    some = file_of(rows_total=54, counts={"withdrawn": 51, "lost": 51, "refused": 3})
    words = "Undone in part: 3 of 54 rows refused"
    assert state_words(file_of(), undone_by=some) == ("warn", words)
    none = file_of(rows_total=54, counts={"refused": 54})
    words = "Done, and its undo took nothing back: 54 of 54 rows refused"
    assert state_words(file_of(), undone_by=none) == ("warn", words)


@pytest.mark.parametrize("code", [*BRAKES, NEEDS_MAPPING])
def test_each_reason_of_a_hold_has_words(code: str) -> None:
    file = file_of(state=FileState.HELD, problem=LOST | {"code": code}, shown={code: 3})
    words = state_words(file).words
    assert words.startswith("Held: ")
    assert "look at it" not in words


def test_every_count_is_shown_with_a_label() -> None:
    counts = dict.fromkeys(COUNTS, 2)
    numbers = numbers_of(file_of(counts=counts))
    assert {number.list for number in numbers} == {*COUNTS} - {"lost"}  # listed as would_lose
    assert all(label_of(file_of(), word) for word in COUNTS)
    done = numbers_of(file_of(counts={"lost": 4, "unchanged": 1, "created": 0}))
    assert [each.label for each in done] == ["lost access", "unchanged"]
    dry = numbers_of(file_of(counts={"created": 4}, dry_run=True))
    assert [each.label for each in dry] == ["would be created"]


def test_a_title_has_no_name() -> None:
    named = file_of(id=17, file_name="Robin Sample.csv")
    assert file_words.title_of(named) == "File 17"
    assert file_words.title_of(file_of(id=18, undoes_id=17)) == "Undo 18"


def test_no_words_name_a_command_of_the_shell() -> None:
    held = file_of(state=FileState.HELD)
    assert not [remedy for remedy in Remedy if "frontdesk" in remedy_words(remedy, held)]


def test_the_remedies_of_an_upload_are_its_steps() -> None:
    uploaded = file_of(draft_id=4)
    sent = file_of()
    words = {remedy: remedy_words(remedy, uploaded) for remedy in Remedy}
    assert not [text for text in words.values() if "send" in text.casefold().replace("sender", "")]
    assert words[Remedy.NAME_SHEET] == "Choose the sheet at the columns of the upload."
    assert remedy_words(Remedy.NAME_SHEET, sent).startswith("Send the file again with that sheet")
    again = [file_words.send_again(file).split()[6] for file in (uploaded, sent)]
    assert again == ["upload", "send"]


def test_a_decision_is_the_remedy_of_a_held_file_only() -> None:
    held = file_of(state=FileState.HELD)
    assert "approves the file" in remedy_words(Remedy.APPROVE_FILE, held)
    for other in (file_of(dry_run=True), file_of(state=FileState.CANCELLED)):
        assert remedy_words(Remedy.APPROVE_FILE, other) == ""


def test_the_numbers_of_what_was_not_applied_say_so() -> None:
    counts = {"lost": 50, "created": 2}
    for nothing in (
        file_of(state=FileState.CANCELLED, counts=counts, rows_done=0),
        file_of(dry_run=True, counts=counts),
    ):
        labels = [number.label for number in file_words.short_numbers(nothing)]
        assert labels == ["would lose access", "would be created"]
    half = file_of(state=FileState.CANCELLED, counts=counts, rows_done=10)
    assert "lost" in [number.label for number in file_words.short_numbers(half)]


def test_one_is_no_plural() -> None:
    for code in BRAKES:
        held = HELD | {"problem": LOST | {"code": code}, "shown": {code: 1}}
        words = file_words.held_for(file_of(**held))
        assert not words.startswith(("1 people", "1 rows", "1 new people", "1 values"))
    assert file_words.held_for(file_of(**HELD | {"shown": {"too_many_lose_access": 1}})) == (
        "1 person would lose access"
    )
    done = file_of(counts={"refused": 1})
    assert state_words(done).words == "Done, 1 row refused"
    undone = file_of(counts={"refused": 1}, rows_total=1)
    assert "1 of 1 row refused" in state_words(file_of(), undone_by=undone).words
