"""An upload by steps: nothing is applied before its dry run, and two windows don't undo each other."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from frontdesk import usage
from frontdesk.errors import Invalid, NotFound, RateLimited
from frontdesk.files import actions
from frontdesk.files.drafts import steps, unfinished_drafts
from frontdesk.files.drafts.steps import DraftKey, DraftUpload, NewDraft
from frontdesk.files.model import (
    BrokeOff,
    Draft,
    DraftChanged,
    EligibilityFile,
    TooManyBytes,
    WrongState,
)
from frontdesk.formats.model import FileMode
from frontdesk.reach import EVERY, Reach
from tests.conftest import SetClock
from tests.files.loading import Desk, csv_of, row

DAY = 86_400
MINUTES = 10  # without a part, until an upload counts as broken off
MAPPING = {"columns": {"ID": "external_id"}}
RENAMED = csv_of([row(n) for n in range(40)]).replace(b"external_id", b"ID", 1)


class Window:
    """A user at the steps, who sees the draft as it was after their last step."""

    def __init__(self, desk: Desk, content: bytes = RENAMED, account_id: int | None = None) -> None:
        self.desk = desk
        self.account_id = account_id or desk.customer.account_id
        with desk.db.write() as tx:
            begun = steps.begin_draft(tx, NewDraft(self.account_id, "census.csv"), self.by())
        self.upload = DraftUpload(desk.db, begun, desk.clock)
        if content:
            self.upload.write(content)
        self.draft: Draft = begun

    def by(self) -> Any:
        return self.desk.requester()

    def finish(self) -> "Window":
        self.draft = self.upload.finish(self.by())
        return self

    def step(self, take: Callable[..., Any], **more: Any) -> Any:
        key = DraftKey(self.draft.id, self.draft.version)
        with self.desk.db.write() as tx:
            found = take(tx, key, Reach.of(self.account_id), self.by(), **more)
        if isinstance(found, tuple):
            self.draft, file = found
            return file
        self.draft = found or self.draft
        return self.draft

    def decide(self, mode: FileMode = FileMode.CHANGE, **more: Any) -> "Window":
        plan_id = self.desk.customer.plan_ids[0]
        self.step(steps.set_plan_and_mode, plan_id=plan_id, mode=mode)
        self.step(steps.set_mapping, mapping=more.get("mapping", MAPPING))
        return self

    def dry_run(self) -> EligibilityFile:
        file: EligibilityFile = self.desk.work(self.step(steps.dry_run))
        return file

    def look(self, reach: Reach = EVERY) -> Draft:
        read = steps.get_draft
        return self.desk.db.ask(lambda tx: read(tx, self.draft.id, reach, now=self.desk.clock()))


def test_the_dry_run_and_the_applied_file_read_the_one_upload(desk: Desk) -> None:
    window = Window(desk).finish().decide()
    dry = window.dry_run()
    assert (dry.state, dry.dry_run, dry.counts) == ("done", True, {"created": 40})
    assert desk.members() == {}
    again = window.dry_run()  # the content is still there
    assert again.counts == {"created": 40}
    file = desk.work(window.step(steps.apply))
    assert (file.state, file.counts, file.sha256) == ("done", {"created": 40}, dry.sha256)
    assert len(desk.members()) == 40
    assert (window.draft.state, window.draft.file_id) == ("applied", file.id)
    with pytest.raises(WrongState, match=f"applied, as file {file.id}"):
        window.step(steps.apply)


def test_nothing_is_applied_without_plan_mode_mapping_and_the_dry_run_of_them(desk: Desk) -> None:
    window = Window(desk).finish()
    for take, words in ((steps.dry_run, "plan first"), (steps.apply, "dry run")):
        with pytest.raises(WrongState, match=words):
            window.step(take)
    plan_id = desk.customer.plan_ids[0]
    window.step(steps.set_plan_and_mode, plan_id=plan_id, mode=FileMode.FULL)
    with pytest.raises(WrongState, match="columns are read"):
        window.step(steps.dry_run)
    with pytest.raises(Invalid):
        window.step(steps.set_mapping, mapping={"columns": {"ID": "no such field"}})
    window.step(steps.set_mapping, mapping=MAPPING)
    waiting = window.step(steps.dry_run)
    for take in (steps.dry_run, steps.apply):
        with pytest.raises(WrongState):
            window.step(take)
    desk.work(waiting)
    window.step(steps.set_mapping, mapping=MAPPING | {"columns": {"ID": None}})
    with pytest.raises(WrongState, match="dry run"):
        window.step(steps.apply)
    failed = window.dry_run()
    assert failed.state == "failed"
    with pytest.raises(WrongState, match="dry run"):
        window.step(steps.apply)


def test_a_step_that_makes_the_dry_run_worthless_ends_it(desk: Desk) -> None:
    window = Window(desk).finish().decide()
    for take, more in (
        (steps.set_mapping, {"mapping": MAPPING}),
        (steps.set_plan_and_mode, {"plan_id": desk.customer.plan_ids[0], "mode": FileMode.FULL}),
    ):
        waiting = window.step(steps.dry_run)
        window.step(take, **more)
        assert desk.reread(waiting).state == "cancelled"
        assert window.draft.dry_run_id is None


def test_an_accounts_dry_runs_count_among_its_files(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MOST_FILES", 1)
    window = Window(desk).finish().decide()
    desk.hand_in(csv_of([row(1)]))
    with pytest.raises(RateLimited, match="files that wait or run"):
        window.step(steps.dry_run)


def test_a_draft_of_a_killed_process_ends_some_minutes_after_its_last_part(
    desk: Desk, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "MOST_DRAFTS", 1)
    killed = Window(desk)
    clock.advance(MINUTES * 60 - 60)
    killed.upload.flush()
    clock.advance(MINUTES * 60 - 60)
    steps.delete_left_drafts(desk.db, clock())
    with pytest.raises(RateLimited, match=r"arriving are 1\. An upload that broke off ends 10 min"):
        Window(desk)
    clock.advance(120)
    window = Window(desk).finish()
    assert desk.db.ask(lambda tx: unfinished_drafts(tx, desk.customer.account_id)) == [
        killed.draft.id,
        window.draft.id,
    ]
    steps.delete_left_drafts(desk.db, clock())
    assert desk.db.ask(lambda tx: unfinished_drafts(tx, desk.customer.account_id)) == [
        window.draft.id
    ]
    killed.upload.write(b"later")
    for late in (killed.upload.flush, killed.finish):
        with pytest.raises(BrokeOff, match="stood still for over 10 minutes"):
            late()
    assert desk.count("draft_parts") == 1


def test_the_applied_file_meets_the_brakes_and_keeps_its_content_while_it_is_held(
    desk: Desk, clock: SetClock
) -> None:
    desk.load(csv_of(row(n) for n in range(100)))
    window = Window(desk).finish().decide(FileMode.FULL)
    dry = window.dry_run()
    assert dry.problem is not None
    assert (dry.needs_approval, dry.problem["code"]) == (True, "too_many_lose_access")
    held = desk.work(window.step(steps.apply))
    assert (held.state, held.counts["would_lose"]) == ("held", 60)
    clock.advance(3 * DAY)
    steps.delete_left_drafts(desk.db, clock())
    done = desk.approve(held)
    assert (done.state, done.counts["ended"]) == ("done", 60)
    steps.delete_left_drafts(desk.db, clock())
    assert (desk.count("file_drafts"), desk.count("draft_parts")) == (0, 0)


def test_a_step_of_a_window_that_was_overtaken_does_nothing(desk: Desk) -> None:
    window = Window(desk).finish().decide()
    other = Window.__new__(Window)
    other.__dict__.update(window.__dict__)
    window.step(steps.set_mapping, mapping={})
    plan_id = desk.customer.plan_ids[0]
    for take, more in (
        (steps.set_plan_and_mode, {"plan_id": plan_id, "mode": FileMode.FULL}),
        (steps.set_mapping, {"mapping": MAPPING}),
        (steps.dry_run, {}),
        (steps.apply, {}),
        (steps.discard, {}),
    ):
        with pytest.raises(DraftChanged, match="another window"):
            other.step(take, **more)
    assert window.look() == window.draft
    assert desk.count("eligibility_files") == 0


def test_a_draft_goes_a_day_after_its_last_step_or_when_it_is_discarded(
    desk: Desk, clock: SetClock
) -> None:
    window = Window(desk).finish()
    clock.advance(DAY - 60)
    window.decide()
    discarded = Window(desk).finish()
    discarded.step(steps.discard)
    with pytest.raises(NotFound):
        discarded.look()
    clock.advance(DAY - 60)
    steps.delete_left_drafts(desk.db, clock())
    assert window.look() == window.draft
    account = desk.customer.account_id
    assert desk.db.ask(lambda tx: unfinished_drafts(tx, account)) == [window.draft.id]
    clock.advance(61)
    with pytest.raises(NotFound):
        window.look()
    steps.delete_left_drafts(desk.db, clock())
    assert (desk.count("file_drafts"), desk.count("draft_parts")) == (0, 0)


def test_a_draft_is_its_accounts_alone(desk: Desk, other: Desk) -> None:
    window = Window(desk).finish()
    account = other.customer.account_id
    assert window.look(Reach.of(desk.customer.account_id)) == window.look(EVERY)
    for id_ in (window.draft.id, 999):
        with pytest.raises(NotFound) as refused:
            desk.db.ask(
                partial(steps.get_draft, draft_id=id_, reach=Reach.of(account), now=desk.clock())
            )
        assert str(refused.value) == str(NotFound("eligibility file"))
    with pytest.raises(NotFound):
        window.step(
            steps.set_plan_and_mode, plan_id=other.customer.plan_ids[0], mode=FileMode.CHANGE
        )
    now = desk.clock()
    lists = [
        desk.db.ask(partial(steps.list_drafts, account_id=of, now=now))
        for of in (desk.customer.account_id, account)
    ]
    assert lists == [[window.draft], []]


def test_drafts_have_limits_and_count_for_the_quota(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(usage, "count", lambda *_, files=0, **__: counted.append(files))
    with pytest.raises(Invalid):
        Window(desk, b"").finish()
    Window(desk).finish()
    assert counted == [len(RENAMED)]
    monkeypatch.setattr(steps, "MOST_BYTES", len(RENAMED) + 10)
    with pytest.raises(TooManyBytes, match="discard one"):
        Window(desk).finish()
    monkeypatch.setattr(steps, "MOST_DRAFTS", 3)
    with pytest.raises(RateLimited, match="discard one"):
        Window(desk)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_suggestion_is_made_of_the_stored_rows_and_kept_with_the_draft(desk: Desk) -> None:
    rows = [row(n) for n in range(12_000)]
    content = csv_of(rows).replace(b"external_id", b"Employee ID", 1)
    window = Window(desk, b"")
    for start in range(0, len(content), 100_000):
        if window.upload.write(content[start : start + 100_000]):
            window.upload.flush()
    window.finish()
    draft = suggest(window)
    assert draft.suggestion is not None
    assert draft.suggestion["rows"] == 1000
    columns = {each["column"]: each for each in draft.suggestion["columns"]}
    assert columns["Employee ID"]["fields"] == ["external_id"]
    window.decide(mapping=draft.suggestion["mapping"])
    assert suggest(window).suggestion == draft.suggestion


def test_a_suggestion_is_no_step_and_made_once(desk: Desk, clock: SetClock) -> None:
    window = Window(desk).finish()
    made: list[int] = []

    def make(*_: Any, **__: Any) -> dict[str, Any]:
        made.append(1)
        window.decide()  # in another window, while it is made
        return {"rows": 1}

    clock.advance(60)
    draft = suggest(window, make=make)
    assert (draft.suggestion, draft.mapping) == ({"rows": 1}, MAPPING)
    assert (draft.version, draft.changed_at) == (window.draft.version, window.draft.changed_at)
    assert suggest(window, make=make) == draft
    assert len(made) == 1
    desk.work(window.step(steps.dry_run))
    window.step(steps.apply)
    with pytest.raises(WrongState, match="applied"):
        suggest(window, make=make)


def suggest(window: Window, **more: Any) -> Draft:
    desk = window.desk
    now = desk.clock()
    return steps.suggest(desk.db, window.draft.id, EVERY, now=now, today="2026-11-22", **more)
