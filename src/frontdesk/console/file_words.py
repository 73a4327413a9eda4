"""The words of a file's page: its state, its numbers, and its faults with what to do about them
(pure; docs/console.md, Files, has the table).
"""

from typing import NamedTuple

from frontdesk import codes
from frontdesk.codes import Remedy, Where, complete
from frontdesk.files import model
from frontdesk.files.model import EligibilityFile, FileState, FileStep
from frontdesk.files.undo import UndoNumbers
from frontdesk.text import count_text

_FILES = codes.files


class StateWords(NamedTuple):
    """A state for people: its tone (good, warn, bad, plain or draft), and its words."""

    tone: str
    words: str


class Number(NamedTuple):
    """A number of a file. `list` is the word of the list that it opens, None without one."""

    value: int
    label: str
    list: str | None


# Why a file is held, after "Held: ", by the number that the brake counted: of one, and of more.
_HELD_FOR_NUMBER: dict[str, tuple[str, str]] = {
    _FILES.TOO_MANY_MOVES: ("person would move between plans", "people would move between plans"),
    _FILES.TOO_MANY_OTHER_PEOPLE: ("row describes another person", "rows describe other people"),
    _FILES.TOO_MANY_SIMILAR: (
        "new person looks like a stored one",
        "new people look like stored ones",
    ),
    _FILES.TOO_MANY_PLACEHOLDERS: ("value stands for none", "values stand for none"),
    _FILES.TOO_MANY_LOSE_ACCESS: ("person would lose access", "people would lose access"),
    _FILES.BEGINS_LATER: ("person would begin later", "people would begin later"),
    _FILES.TOO_MANY_ENDS: ("person would be ended", "people would be ended"),
}
_HELD_FOR: dict[str, str] = {
    _FILES.OLDER_THAN_APPLIED: "it is older than an applied one",
    _FILES.OVERTAKEN: "a newer file has come",
    _FILES.NEEDS_MAPPING: "it needs a mapping",
}

# The label of each count, and that of a count which only some files have otherwise.
LABELS: dict[str, str] = {
    "created": "created",
    "updated": "changed",
    "unchanged": "unchanged",
    "moved": "moved",
    "ended": "ended",
    "reopened": "reopened",
    "restored": "restored",
    "withdrawn": "withdrawn",
    model.WOULD_END: "would be ended",
    model.WOULD_LOSE: "would lose access",
    model.WOULD_MOVE: "would move",
    model.WOULD_BE_SIMILAR: "look like a new person",
    model.WOULD_BE_OTHER: "other people",
    model.WOULD_BE_LATER: "would begin later",
    model.KEPT: "kept",
    model.REFUSED: "refused",
    model.SKIPPED: "skipped",
    model.WARNED: "warned",
    model.LOST: "lost access",
    model.GAINED: "gained access",
}
_DRY_RUN_LABELS = {
    "created": "would be created",
    "updated": "would be changed",
    "moved": "would move here",
    "ended": "would be ended",
    "reopened": "would be reopened",
    model.LOST: "would lose access",
    model.GAINED: "would gain access",
}
# What people ask first comes first.
_ORDER = (
    *model.HELD_LISTS,
    model.LOST,
    "created",
    "updated",
    "moved",
    "ended",
    model.WOULD_END,
    "reopened",
    "restored",
    "withdrawn",
    "unchanged",
    model.GAINED,
    model.KEPT,
    model.REFUSED,
    model.SKIPPED,
    model.WARNED,
)

# What a person at the console does about a fault; the mend is at the source.
_REMEDIES: dict[Remedy, str] = complete(
    Remedy,
    {
        Remedy.ACCEPT_MAPPING: "An approver accepts the suggested mapping on this page.",
        Remedy.APPROVE_FILE: "If the numbers are right, an approver approves the file on this page.",
        Remedy.CANCEL_FILE: "Cancel the file on this page.",
        Remedy.CREATE_MEMBER: "Send the person as a new one.",
        Remedy.DECLARE_ENCODING: (
            "Send the file again and name its encoding: a CSV of Excel on Windows is mostly Windows 1252."
        ),
        Remedy.GIVE_MAPPING: "Send the file again with another mapping.",
        Remedy.LIST_ACCOUNTS: "",
        Remedy.LIST_CLIENTS: "",
        Remedy.LIST_INVITATIONS: "",
        Remedy.LIST_MESSAGES: "",
        Remedy.LIST_PLANS: "",
        Remedy.LIST_PROVIDER_GROUPS: "",
        Remedy.LIST_USERS: "",
        Remedy.MOVE_MEMBER: "Send the person under the other plan.",
        Remedy.NAME_ACCOUNT: "",
        Remedy.NAME_SHEET: "Send the file again with that sheet first, or name the sheet in a mapping.",
        Remedy.RENAME_MEMBER: "Give the stored person the new identifier, then send the file again.",
        Remedy.RENAME_MEMBERS: (
            "If the sender has renumbered people, give the stored ones their new identifiers first."
        ),
        Remedy.SAY_HEADER: (
            "Send the file again with a line above the first person that has the names of the columns."
        ),
        Remedy.SAY_MODE: "Send the file again and say its mode.",
        Remedy.SHOW_MEMBER: "",
        Remedy.STOP_SUPPRESSING: "",
        Remedy.UPDATE_MEMBER: "Send the person as a change.",
    },
)
# Of a file that was uploaded at the console: what its steps are for.
_REMEDIES_OF_UPLOADS: dict[Remedy, str] = {
    Remedy.CREATE_MEMBER: "Upload the person as a new one.",
    Remedy.DECLARE_ENCODING: (
        "Upload the file again, and choose there how it is written: a CSV of Excel on Windows is mostly "
        "Windows 1252."
    ),
    Remedy.GIVE_MAPPING: "Choose other columns in the upload, or change its mapping as a text.",
    Remedy.MOVE_MEMBER: "Upload the person under the other plan.",
    Remedy.NAME_SHEET: "Choose the sheet at the columns of the upload.",
    Remedy.RENAME_MEMBER: "Give the stored person the new identifier, then upload the file again.",
    Remedy.SAY_HEADER: (
        "Upload the file again with a line above the first person that has the names of the columns."
    ),
    Remedy.SAY_MODE: "Choose in the plan of the upload whether the file lists everyone.",
    Remedy.UPDATE_MEMBER: "Upload the person as a change.",
}
_DECISIONS = {Remedy.ACCEPT_MAPPING, Remedy.APPROVE_FILE, Remedy.CANCEL_FILE}


def title_of(file: EligibilityFile) -> str:
    """The title of the file's page. It has no name of a file: a name may hold that of a person."""
    return f"Undo {file.id}" if file.undoes_id is not None else f"File {file.id}"


def state_words(file: EligibilityFile, *, undone_by: EligibilityFile | None = None) -> StateWords:
    """The state of the file in words; `undone_by` is the undo that has taken it back."""
    prefix = "Dry run: " if file.dry_run else ""
    tone, words = _done_words(file) if file.state is FileState.DONE else _state_words(file)
    if undone_by is not None:
        of_undo, taken_back = _taken_back(undone_by)
        is_plain = file.state is FileState.DONE and undone_by.counts.keys() != {model.REFUSED}
        tone, words = of_undo, taken_back if is_plain else f"{words}, and {taken_back}"
    return StateWords(tone, prefix + words if prefix else words[:1].upper() + words[1:])


def _taken_back(undo: EligibilityFile) -> tuple[str, str]:
    """What an undo that has ended has made of its file: rows that it refused are not taken back."""
    refused = undo.counts.get(model.REFUSED, 0)
    if not refused:
        return "plain", "undone"
    rows = f"{refused:,} of {count_text(undo.rows_total or refused, 'row')} refused"
    if undo.counts.keys() == {model.REFUSED}:
        return "warn", f"its undo took nothing back: {rows}"
    return "warn", f"undone in part: {rows}"


def _state_words(file: EligibilityFile) -> tuple[str, str]:
    words = {
        FileState.RECEIVING: ("plain", "arriving"),
        FileState.WAITING: ("plain", _waiting_words(file)),
        FileState.RUNNING: ("plain", _running_words(file)),
        FileState.HELD: ("warn", f"held: {held_for(file)}"),
        FileState.FAILED: ("bad", "failed"),
        FileState.CANCELLED: ("plain", "cancelled"),
    }
    return words[file.state]


def _done_words(file: EligibilityFile) -> tuple[str, str]:
    if file.needs_approval:
        return "warn", f"it would be held: {held_for(file)}"
    refused = file.counts.get(model.REFUSED, 0)
    if refused:
        return "warn", f"done, {count_text(refused, 'row')} refused"
    return "good", "done"


def _waiting_words(file: EligibilityFile) -> str:
    if file.approved:
        return "approved, waits for a worker"
    if file.started_at is not None:
        return "waits for its turn"
    return "waiting"


def _running_words(file: EligibilityFile) -> str:
    row = f"row {file.rows_checked:,}" if file.rows_checked else ""
    if file.undoes_id is not None:
        is_checking = file.step is FileStep.CHECK
        looking = f"looking at what the undo would do, {row}".rstrip(", ")
        return looking if is_checking else "taking back"
    if file.step is FileStep.CHECK:
        return f"checking {row}".rstrip()
    if file.step is FileStep.END:
        return "ending the people that it omits"
    return f"deciding what it would do, {row}".rstrip(", ") if file.rows_done == 0 else "applying"


def held_for(file: EligibilityFile) -> str:
    """Why the file is held, or would be, in a few words."""
    code = (file.problem or {}).get("code", "")
    if code not in _HELD_FOR_NUMBER:
        return _HELD_FOR.get(code, "a person has to look at it")
    number = (file.shown or {}).get(code, 0)
    of_one, of_more = _HELD_FOR_NUMBER[code]
    return f"{number:,} {of_one if number == 1 else of_more}"


def numbers_of(file: EligibilityFile) -> list[Number]:
    """The numbers of the file, those that people ask for first first, without zeros."""
    counts = file.counts
    is_listed_as_loss = model.WOULD_LOSE in counts
    return [
        Number(counts[word], label_of(file, word), word)
        for word in _ORDER
        if counts.get(word) and not (word == model.LOST and is_listed_as_loss)
    ]


def label_of(file: EligibilityFile, word: str) -> str:
    """The label of a count of this file."""
    if has_applied(file):
        return LABELS[word]
    return _DRY_RUN_LABELS.get(word, LABELS[word])


def has_applied(file: EligibilityFile) -> bool:
    """Whether the numbers are of what was done: else nothing was, and they are of what would be."""
    if file.dry_run or file.state is FileState.HELD:
        return False
    return file.state is not FileState.CANCELLED or file.rows_done > 0


def short_numbers(file: EligibilityFile) -> list[Number]:
    """The numbers of a file in a list of files: created, changed, lost, refused; the first of its
    numbers where it has applied nothing.
    """
    counts = file.counts
    if not has_applied(file):
        return numbers_of(file)[:4]
    changed = sum(counts.get(word, 0) for word in model.CHANGED if word != "created")
    lost = counts.get(model.LOST, 0)
    return [
        Number(counts.get("created", 0), "created", "created"),
        Number(changed, "changed", None),
        Number(lost, "lost", model.LOST),
        Number(counts.get(model.REFUSED, 0), "refused", model.REFUSED),
    ]


def counted_numbers(counted: UndoNumbers) -> list[Number]:
    """What an undo would do, without zeros."""
    found = (
        Number(counted.lost, "would lose access", None),
        Number(counted.gained, "would get access back", None),
        Number(counted.restored, "as before the file", None),
        Number(counted.left, "changed since: would stay as they are", None),
    )
    return [number for number in found if number.value]


def undo_numbers(file: EligibilityFile) -> list[Number]:
    """What an undo of the file takes back at most, without zeros."""
    counts = file.counts
    made = counts.get("created", 0)
    lost = counts.get(model.GAINED, 0)
    changed = sum(counts.get(word, 0) for word in model.CHANGED) - made
    found = (
        Number(made, "created: withdrawn, without access", None),
        Number(changed, "changed: as before", None),
        Number(counts.get(model.LOST, 0), "lost access: get it back", None),
        Number(lost, "gained access: lose it", None),
    )
    return [number for number in found if number.value]


def remedy_words(remedy: Remedy | None, file: EligibilityFile) -> str:
    """What a person does about it; "" without a remedy, and for a decision about a held file that
    this one is not.
    """
    if remedy is None or (remedy in _DECISIONS and file.state is not FileState.HELD):
        return ""
    if file.draft_id is not None and remedy in _REMEDIES_OF_UPLOADS:
        return _REMEDIES_OF_UPLOADS[remedy]
    return _REMEDIES[remedy]


def send_again(file: EligibilityFile) -> str:
    """What is done about a refused row without another remedy."""
    how = "send" if file.draft_id is None else "upload"
    return f"Correct it at the source and {how} the whole file again: right rows stay as they are."


def may_pass_again(file: EligibilityFile) -> bool:
    """Whether a dry run that has ended early may end well if it is begun again as it was."""
    if file.state is FileState.CANCELLED:
        return True
    return (file.problem or {}).get("code") == codes.files.INTERNAL


def remedy_of(file: EligibilityFile) -> str:
    """What to do about the problem of a failed file; "" without a remedy."""
    entry = codes.find(Where.FILE, (file.problem or {}).get("code", ""))
    return remedy_words(entry.remedy if entry else None, file)
