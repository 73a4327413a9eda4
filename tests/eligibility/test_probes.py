"""What refusals tell of other accounts' members is counted, told and ended at a limit, in POSTs and in files."""

import io
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Event, current_thread, main_thread
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.access.tables import access_tokens
from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.audit import AuditQuery, list_entries
from frontdesk.config import Config, Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_together
from frontdesk.eligibility import enrol, list_probes, parse_member
from frontdesk.eligibility.decide import ChunkKeys, TooManyTaken
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.errors import FrontdeskError, Invalid
from frontdesk.formats.model import FileMode
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import NOW, Customer, make_customer, make_operator, member_body
from tests.files.loading import Desk, csv_of, row
from tests.patience import PATIENCE_SECONDS

LIMIT = 5


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("frontdesk.eligibility.decide", "frontdesk.web.stored_metrics"):
        monkeypatch.setattr(sys.modules[module], "TAKEN_PER_DAY", LIMIT)


@pytest.fixture
def other(db: Database) -> Customer:
    return make_customer(db, name="Other")


@pytest.fixture
def prober(api: Api, owner: Database, other: Customer) -> Api:
    """The other account's client; no token ends while the clock goes on."""
    with owner.write() as tx:
        tx.execute(access_tokens.update().values(expires_at=NOW + timedelta(days=365)))
    return api.as_(other.token)


@pytest.fixture
def desk(db: Database, other: Customer, clock: SetClock) -> Desk:
    """Files of the other account."""
    return Desk(db, other, clock)


@pytest.fixture
def others(db: Database, customer: Customer, clock: SetClock) -> Desk:
    """Files of the account whose members are asked after."""
    return Desk(db, customer, clock)


def path_of(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def trail(db: Database) -> list[tuple[Any, ...]]:
    """Who had learned how much, of which account, by which file."""
    found = db.ask(lambda tx: list_entries(tx, AuditQuery(action="uniqueness.probed")))
    names = ("actor", "account_id", "subject_id")
    return [(*(entry[name] for name in names), entry["detail"]["taken_today"]) for entry in reversed(found)]


def taken_today(db: Database, clock: SetClock) -> dict[str, int]:
    found = db.ask(lambda tx: list_probes(tx, clock().date().isoformat()))
    return {one.client: one.taken for one in found}


def probe(prober: Api, other: Customer, number: int) -> Any:
    """A POST that asks after the member of another account with this number."""
    body = member_body(number, external_id=f"probe-{number}", member_id=f"probe-{number}")
    return prober.post(path_of(other), body)


def fill(api: Api, customer: Customer, count: int) -> None:
    for number in range(1, count + 1):
        assert api.post(path_of(customer), member_body(number)).status_code == 201


def test_after_the_limit_an_answer_no_longer_depends_on_what_others_have(
    api: Api, prober: Api, db: Database, customer: Customer, other: Customer, clock: SetClock
) -> None:
    fill(api, customer, LIMIT + 2)
    clock.advance(3600)
    answers = [probe(prober, other, number) for number in range(1, LIMIT + 3)]
    assert [answer.status_code for answer in answers] == [422] * LIMIT + [429] * 2
    free = probe(prober, other, 999_999)
    assert (free.status_code, free.json()["errors"]) == (429, answers[-1].json()["errors"])
    [fault] = free.json()["errors"]
    assert (fault["field"], fault["code"]) == ("external_id", "too_many_taken")
    assert free.headers["Retry-After"] == str(11 * 3600)
    assert taken_today(db, clock) == {other.client_id: LIMIT}
    # An entry each time that the number doubles, and at the limit.
    assert trail(db) == [(other.client_id, other.account_id, None, n) for n in (1, 2, 4, LIMIT)]
    operator = api.as_(make_operator(db).token)
    for _ in range(2):  # the second answer is made of what the first has read
        assert "frontdesk_uniqueness_clients_at_limit 1.0" in operator.get("/metrics").text
    clock.advance(11 * 3600)
    assert taken_today(db, clock) == {}
    assert probe(prober, other, 999_999).status_code == 201
    answers = [probe(prober, other, number) for number in range(1, LIMIT + 2)]
    assert [answer.status_code for answer in answers] == [422] * LIMIT + [429]


def test_each_of_the_three_keys_counts_and_a_record_counts_once(
    api: Api, prober: Api, db: Database, customer: Customer, other: Customer, clock: SetClock
) -> None:
    fill(api, customer, 1)
    ours = member_body(2)
    assert prober.post(path_of(other), ours).status_code == 201
    taken = {"external_id": "AB 000001"}, {"member_id": "M-000001"}, {"email": "ROBIN.1@example.com"}
    for changes in (*taken[1:], taken[1] | taken[2]):
        assert prober.post(path_of(other), ours | changes).status_code == 422
    assert prober.post(path_of(other), taken[0]).status_code == 422
    assert taken_today(db, clock) == {other.client_id: 4}
    metrics = api.as_(make_operator(db).token).get("/metrics").text
    assert f'frontdesk_uniqueness_taken{{account_id="{other.account_id}"}} 4.0' in metrics
    assert "frontdesk_uniqueness_clients_at_limit 0.0" in metrics


def test_refusals_of_the_accounts_own_values_and_updates_of_its_members_go_on(
    api: Api, prober: Api, db: Database, customer: Customer, other: Customer, clock: SetClock
) -> None:
    fill(api, customer, LIMIT)
    ours = [member_body(number) for number in (101, 102)]
    for body in ours:
        assert prober.post(path_of(other), body).status_code == 201
    assert prober.post(path_of(other), ours[0] | {"member_id": "M-000102"}).status_code == 422
    assert taken_today(db, clock) == {}
    for number in range(1, LIMIT + 1):
        probe(prober, other, number)
    assert probe(prober, other, 1).status_code == 429
    # Its own members are updated with all their keys, by it and by others; the neighbour in the chunk notices nothing.
    assert prober.post(path_of(other), ours[0] | {"last_name": "Changed"}).status_code == 200
    assert prober.post(path_of(other), ours[0] | {"email": "new@example.com"}).status_code == 429
    assert api.post(path_of(customer), member_body(201)).status_code == 201


def test_a_process_that_has_seen_no_probe_gives_no_answer_beyond_the_limit(
    api: Api, prober: Api, config: Config, customer: Customer, other: Customer, desk: Desk
) -> None:
    """Not by a POST, a file, a dry run, an undo or the undo of one: a free value gets the answer of a taken one."""
    fill(api, customer, LIMIT)
    db, clock, desk.client = desk.db, desk.clock, other.client_id
    others = Desk(db, customer, clock)
    free, taken = (desk.undo(desk.load(csv_of([row(number)]))) for number in (701, 702))
    others.load(csv_of([row(702), row(704, email="old@example.com")]))
    renamed = [desk.load(csv_of([row(711, last_name=name, member_id=name)])) for name in ("Old", "New")][1]
    second = App(config, open_for_test(config.database_url, "second"), clock)
    with TestClient(build_asgi(second, Telemetry(io.StringIO()))) as http:
        fresh = Api(http, other.token, io.StringIO())
        assert fresh.post(path_of(other), member_body(801)).status_code == 201  # it told nothing by then
        for number in range(1, LIMIT + 1):
            assert probe(prober, other, number).status_code == 422
        assert [probe(fresh, other, number).status_code for number in (802, 1)] == [429, 429]
    for number, dry_run in ((703, False), (704, False), (703, True), (704, True)):
        assert desk.load(csv_of([row(number)]), dry_run=dry_run).codes == {"too_many_taken": 1}
    for undo in (free, taken, renamed):
        assert desk.undo(undo).codes == {"too_many_taken": 1}
    assert taken_today(db, SetClock(NOW)) == {other.client_id: LIMIT}
    assert {actor for actor, *_ in trail(db)} == {other.client_id}


def test_chunks_at_the_same_moment_tell_exactly_the_limit(
    db: Database, others: Desk, other: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    others.load(csv_of(row(n) for n in range(1, 2 * LIMIT + 1)))
    has_decided = Event()

    def tell(numbers: range, before_commit: Callable[[], object]) -> list[Any]:
        records = [parse_member(row(n, external_id=f"P{n}"), today="2026-11-20") for n in numbers]
        place = (other.account_id, other.plan_ids[0])
        items = [Submission(*place, record, "client-1", "request") for record in records]

        def work(tx: Tx, items: Sequence[Submission]) -> list[Enrolled | FrontdeskError]:
            results = enrol(tx, items, now=clock(), uniqueness=Uniqueness.SERVICE)
            before_commit()
            return [*results]

        return write_together(db, items, work)

    def note_and_save(keys: ChunkKeys, tx: Any) -> None:
        if current_thread() is not main_thread():
            has_decided.set()
        save(keys, tx)

    save = ChunkKeys.save
    monkeypatch.setattr(ChunkKeys, "save", note_and_save)
    with ThreadPoolExecutor(1) as thread:
        later: list[Future[list[Any]]] = []

        def let_the_other_decide() -> None:
            later.append(thread.submit(tell, range(LIMIT, 2 * LIMIT + 1), lambda: None))
            if not db.is_sqlite:  # which has one writer
                assert has_decided.wait(PATIENCE_SECONDS)

        first = tell(range(1, LIMIT), let_the_other_decide)
        answers = Counter(type(answer) for answer in (*first, *later[0].result()))
    assert answers == {Invalid: LIMIT, TooManyTaken: LIMIT}
    assert taken_today(db, clock) == {"client-1": LIMIT}


def test_a_dry_run_learns_no_more_than_the_limit_and_leaves_its_trace(
    db: Database, others: Desk, other: Customer, clock: SetClock, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.check.LOOKUP_KEYS", 300)
    others.load(csv_of(row(n, email=f"member.{n}@example.com") for n in range(1_000)))
    desk.load(csv_of([row(5_000)]))
    theirs = [
        row(n, external_id=f"P{n}", member_id=f"P{n}", email=f"member.{n}@example.com") for n in range(999)
    ]
    file = desk.load(csv_of(theirs), dry_run=True)
    assert (file.state, file.codes) == ("done", {"email_taken": LIMIT, "too_many_taken": 999 - LIMIT})
    assert file.counts == {"created": LIMIT, "refused": 999 - LIMIT, "warned": LIMIT}
    assert {entry[:3] for entry in trail(db)} == {("client-1", other.account_id, file.id)}
    assert trail(db)[-1][-1] == LIMIT
    assert taken_today(db, clock) == {"client-1": LIMIT}
    # Nor does the same client learn more by the next file, or by a load that is no dry run. Its own members change.
    changed = [*theirs[:10], row(90_000), row(5_000, last_name="Changed")]
    file = desk.load(csv_of(changed), mode=FileMode.FULL)
    assert (file.codes, file.counts) == ({"too_many_taken": 11}, {"refused": 11, "updated": 1})
    clock.advance(86_400)
    assert desk.load(csv_of([row(90_000)])).counts == {"created": 1}


def test_undos_learn_no_more_than_the_limit_and_withdraw_after_it_as_before(
    db: Database, others: Desk, other: Customer, clock: SetClock, desk: Desk
) -> None:
    own, free = (desk.undo(desk.load(csv_of([row(number)]))) for number in (400, 500))
    to_withdraw = desk.load(csv_of([row(600)]))
    desk.load(csv_of([row(400)]))
    assert desk.undo(own).codes == {"not_unique": 1}
    assert taken_today(db, clock) == {}  # by a member of the account itself, which is not counted
    members = csv_of(row(n) for n in range(LIMIT + 2))
    undo = desk.undo(desk.load(members))
    assert others.load(members).counts == {"created": LIMIT + 2}
    redo = desk.undo(undo)
    assert (redo.counts, redo.codes) == ({"refused": LIMIT + 2}, {"not_unique": LIMIT, "too_many_taken": 2})
    assert {entry[:3] for entry in trail(db)} == {("client-1", other.account_id, redo.id)}
    assert desk.undo(free).codes == {"too_many_taken": 1}  # as for a value that another account has
    assert desk.undo(to_withdraw).counts == {"withdrawn": 1}
    assert taken_today(db, clock) == {"client-1": LIMIT}
