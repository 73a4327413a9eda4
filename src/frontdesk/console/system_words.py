"""The words of System: each part of the installation with a state, what is known of it, and what to do.

What to do names a section of docs/runbook.md, or a command.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk.console.times import span_text
from frontdesk.files.model import FileState
from frontdesk.invitations.model import HoldReason
from frontdesk.system.state import MOST_COUNTED, SystemState

# As the alerts of deploy/prometheus/alerts.yml.
SILENT_WORKER = timedelta(minutes=1)
WAITING_FILE = timedelta(minutes=30)
SILENT_FEED = timedelta(minutes=30)
LATE_RETENTION = timedelta(days=2)
LOW_DISK = 2 * 2**30  # bytes
GIB = 2**30


class Part(NamedTuple):
    """A part of the installation: a tone and its word, what is known, what to do (a section of the
    runbook, or a command in `command`).
    """

    name: str
    tone: str
    word: str
    text: str = ""
    section: str = ""
    command: str = ""


_HELD = {
    HoldReason.BY_OPERATOR: "an operator holds it",
    HoldReason.MOVED: "the database was restored, copied or failed over",
    HoldReason.OLDER: "a backup was restored over the database",
}


def describe_parts(state: SystemState, *, has_relay: bool) -> list[Part]:
    """The parts, each with its state."""
    workers = _workers(state)
    work = [_relay(state, has_relay=has_relay), _delivery(state), *_files(state), *_upkeep(state)]
    if workers.tone == "bad":
        # Nothing goes on, whatever the last worker has left behind.
        work = [_unknown(each) if each.tone == "good" else each for each in work]
    return [*_database(state), workers, *work]


def _unknown(part: Part) -> Part:
    return part._replace(tone="plain", word="no worker")


def _database(state: SystemState) -> Iterator[Part]:
    facts = state.database
    text = f"{facts.kind} {facts.version}, revision {facts.revision}"
    if facts.revision == facts.needed_revision:
        yield Part("Database", "good", "answers", text)
    else:
        text = f"{text}; this program is made for {facts.needed_revision}"
        yield Part("Database", "warn", "another revision", text, command="frontdesk migrate")
    if facts.free_bytes is None or facts.size_bytes is None:
        return
    size = f"{facts.size_bytes / GIB:.1f} GiB used by the database"
    free = f"{facts.free_bytes / GIB:.0f} GiB free, {size}"
    if facts.free_bytes < LOW_DISK:
        yield Part("Disk", "bad", "nearly full", free, "FrontdeskDiskLow")
    else:
        yield Part("Disk", "good", "has room", free)


def _workers(state: SystemState) -> Part:
    ago = state.worker.seen_ago
    if ago is None:
        text = "none has ever run: no mail leaves, no file is loaded"
        return Part("Workers", "bad", "none", text, "FrontdeskWorkerSilent", "frontdesk worker")
    if ago >= SILENT_WORKER:
        text = f"last sign of life {span_text(ago)} ago: no mail leaves, no file is loaded"
        return Part("Workers", "bad", "silent", text, "FrontdeskWorkerSilent")
    return Part("Workers", "good", "at work", "a sign of life within the last minute")


def _relay(state: SystemState, *, has_relay: bool) -> Part:
    worker = state.worker
    counts = ", ".join(f"{count:,} {end}" for end, count in worker.attempts.items() if count)
    text = f"attempts of all workers: {counts}" if counts else "no attempt yet"
    if worker.lag_seconds is not None:
        lag = span_text(timedelta(seconds=worker.lag_seconds))
        text = f"{text}; the newest mail left {lag} after it was due"
    if not has_relay:
        command = "FRONTDESK_SMTP_URL"
        return Part("Relay", "warn", "not set", "invitations wait", command=command)
    if worker.relay_up is None:
        return Part("Relay", "plain", "not asked yet since the worker began", text)
    if not worker.relay_up:
        return Part("Relay", "bad", "down", text, "FrontdeskRelayDown")
    return Part("Relay", "good", "takes mail", text)


def _delivery(state: SystemState) -> Part:
    hold = state.worker.hold
    if hold is None:
        return Part("Delivery", "good", "goes on")
    command = "frontdesk invitations release"
    return Part("Delivery", "bad", "held", _HELD[hold], "FrontdeskDeliveryHeld", command)


def _files(state: SystemState) -> Iterator[Part]:
    waiting, since = state.files[FileState.WAITING]
    running, _ = state.files[FileState.RUNNING]
    held, held_since = state.files[FileState.HELD]
    text = f"{_number_do(waiting, 'wait')}, {_number_do(running, 'run')}"
    if since is not None and state.as_of - since >= WAITING_FILE:
        text = f"{text}; the oldest waits for {span_text(state.as_of - since)}"
        yield Part("Files", "warn", "wait", text, "FrontdeskFileWaiting")
    else:
        yield Part("Files", "good", "are loaded", text)
    if held:
        ago = "" if held_since is None else f", the oldest came {_ago(state, held_since)} ago"
        text = f"{'waits' if held == 1 else 'wait'} for a person{ago}"
        yield Part("Held files", "warn", f"{held:,}", text, "FrontdeskFileHeld")


def _upkeep(state: SystemState) -> Iterator[Part]:
    at = state.retention_at
    if at is None:
        yield Part("Retention", "plain", "not yet", "a worker takes its first turn within a day")
    elif state.as_of - at >= LATE_RETENTION:
        text = f"the last turn began {_ago(state, at)} ago"
        yield Part("Retention", "warn", "late", text, "FrontdeskRetentionLate")
    else:
        yield Part("Retention", "good", "in time")
    if state.unclean:
        text = "SQLite's log may still hold erased values"
        yield Part("Erasures", "warn", "wait", text, "FrontdeskErasuresWaiting")


def _number_do(number: int, verb: str) -> str:
    return f"{number:,} {verb}s" if number == 1 else f"{number:,} {verb}"


def _ago(state: SystemState, at: datetime) -> str:
    return span_text(state.as_of - at)


def bounded_text(count: int) -> str:
    """A bounded count: `12`, and `1,000+` from the bound on."""
    return f"{MOST_COUNTED - 1:,}+" if count >= MOST_COUNTED else f"{count:,}"
