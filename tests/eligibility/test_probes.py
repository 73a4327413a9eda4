"""What refusals tell of other accounts' members is counted, told and ended at a limit, in POSTs and
in files.
"""

import io
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Event, current_thread, main_thread
from typing import Any

import pytest
from sqlalchemy import func, select
from starlette.testclient import TestClient

from frontdesk.access.model import Scope
from frontdesk.access.tables import access_tokens
from frontdesk.app import App
from frontdesk.audit import AuditQuery, list_entries
from frontdesk.clock import Clock
from frontdesk.config import Config, Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_together
from frontdesk.eligibility import enrol, list_holders, list_probes, parse_member, probes
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.eligibility.probes import Probes, TooManyTaken
from frontdesk.eligibility.tables import members
from frontdesk.errors import FrontdeskError, Invalid
from frontdesk.formats.model import FileMode
from frontdesk.installation import build_asgi
from frontdesk.reach import EVERY
from frontdesk.web import stored_metrics
from frontdesk.web.telemetry import Telemetry
from tests.cli.conftest import CommandLine
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import NOW, Customer, make_customer, make_operator, member_body, second_token
from tests.files.loading import Desk, csv_of, row
from tests.patience import PATIENCE_SECONDS

LIMIT = 5


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (probes, stored_metrics):
        monkeypatch.setattr(module, "TAKEN_PER_DAY", LIMIT)


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


def entries(db: Database) -> list[dict[str, Any]]:
    """The entries of the audit trail about answers that showed values of other accounts, oldest
    first.
    """
    found = db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="uniqueness.probed")))
    return [*reversed(found)]


def trail(db: Database) -> list[tuple[Any, ...]]:
    """Who had learned how much, of which account, by which file."""
    names = ("actor", "account_id", "subject_id")
    return [
        (*(entry[name] for name in names), entry["detail"]["taken_today"]) for entry in entries(db)
    ]


def taken_today(db: Database, clock: Clock) -> dict[int, int]:
    """The answers of the day about values of other accounts, by account."""
    found = db.ask(lambda tx: list_probes(tx, clock().date().isoformat()))
    return {one.account_id: one.taken for one in found}


def held_today(db: Database) -> dict[tuple[int, int], int]:
    """The records of the day with a value of another account, by account and holder."""
    found = db.ask(lambda tx: list_holders(tx, EVERY, limit=100))
    return {(each["account_id"], each["holder_id"]): each["taken"] for each in found}


def members_of(db: Database, customer: Customer) -> int:
    query = select(func.count()).where(members.c.account_id == customer.account_id)
    return int(db.ask(lambda tx: tx.execute(query).scalar_one()))


def probe(prober: Api, other: Customer, number: int) -> Any:
    """A POST that asks after the member of another account with this number."""
    body = member_body(number, external_id=f"probe-{number}", member_id=f"probe-{number}")
    return prober.post(path_of(other), body)


def fill(api: Api, customer: Customer, count: int) -> None:
    for number in range(1, count + 1):
        assert api.post(path_of(customer), member_body(number)).status_code == 201


def test_after_the_limit_only_records_with_taken_values_are_refused(
    api: Api, prober: Api, db: Database, customer: Customer, other: Customer, clock: SetClock
) -> None:
    fill(api, customer, LIMIT + 2)
    clock.advance(3600)
    answers = [probe(prober, other, number) for number in range(1, LIMIT + 3)]
    assert [answer.status_code for answer in answers] == [422] * LIMIT + [429] * 2
    assert probe(prober, other, 999_999).status_code == 201
    [fault] = answers[-1].json()["errors"]
    # the address was taken
    assert (fault["field"], fault["code"]) == ("external_id", "too_many_taken")
    assert answers[-1].headers["Retry-After"] == str(11 * 3600)
    assert taken_today(db, clock) == {other.account_id: LIMIT}
    # An entry each time that the number doubles, and at the limit.
    assert trail(db) == [(other.client_id, other.account_id, None, n) for n in (1, 2, 4, LIMIT)]
    operator = api.as_(make_operator(db).token)
    for _ in range(2):  # the second answer is made of what the first has read
        assert "frontdesk_uniqueness_accounts_at_limit 1.0" in operator.get("/metrics").text
    clock.advance(11 * 3600)
    assert taken_today(db, clock) == {}
    answers = [probe(prober, other, number) for number in range(1, LIMIT + 2)]
    assert [answer.status_code for answer in answers] == [422] * LIMIT + [429]


def test_a_customer_whose_identifiers_were_taken_goes_on_with_all_others(
    api: Api, prober: Api, customer: Customer, other: Customer, desk: Desk
) -> None:
    """An account that stores a customer's identifiers first locks it out of these, and of no other:
    by POST, batch and file.
    """
    fill(api, customer, 2 * LIMIT)
    taken = [
        prober.post(path_of(other), member_body(number)).status_code
        for number in range(1, 2 * LIMIT + 1)
    ]
    assert taken == [422] * LIMIT + [429] * LIMIT
    assert prober.post(path_of(other), member_body(501)).status_code == 201
    changed = {"external_id": "AB 000501", "email": "new.address@example.com", "member_id": "M-new"}
    assert prober.post(path_of(other), changed).status_code == 200
    batch = prober.post(f"{path_of(other)}/batch", [member_body(1), member_body(502)])
    assert [each["status"] for each in batch.json()["data"]] == [429, 201]
    file = desk.load(csv_of([row(number) for number in (601, 602)]))
    assert file.counts == {"created": 2}
    assert taken_today(desk.db, desk.clock) == {other.account_id: LIMIT}


def test_the_operator_sees_whose_values_they_are_and_the_tenant_does_not(
    api: Api, prober: Api, app: App, customer: Customer, other: Customer
) -> None:
    db = app.db
    third = make_customer(db, name="Third")
    fill(api, customer, LIMIT + 1)
    assert api.as_(third.token).post(path_of(third), member_body(900)).status_code == 201
    # One record with values of two accounts counts once, and for each holder.
    both = member_body(1, member_id="M-000900")
    answers = [prober.post(path_of(other), both)]
    answers += [probe(prober, other, number) for number in range(1, LIMIT + 2)]
    assert [answer.status_code for answer in answers] == [422] * LIMIT + [429] * 2
    assert taken_today(db, app.clock) == {other.account_id: LIMIT}
    expected = {
        (other.account_id, customer.account_id): LIMIT + 2,
        (other.account_id, third.account_id): 1,
    }
    assert held_today(db) == expected  # those after the limit too
    last = entries(db)[-1]["detail"]
    assert last == {
        "taken_today": LIMIT,
        "held_by": {str(customer.account_id): LIMIT, str(third.account_id): 1},
    }
    cli = CommandLine(app.config.database_url)
    shown = cli.json("account", "collisions", "--account", str(other.account_id))
    assert [(each["holder_id"], each["records"]) for each in shown] == [
        (customer.account_id, LIMIT + 2),
        (third.account_id, 1),
    ]
    assert (
        cli.json("account", "collisions", "--account", str(third.account_id))[0]["account_id"]
        == other.account_id
    )
    for answer in answers:
        assert not {"holder", "held_by", "account"} & set(answer.text.replace('"', " ").split())


def test_many_clients_of_one_account_have_one_limit(
    api: Api, prober: Api, db: Database, customer: Customer, other: Customer, clock: SetClock
) -> None:
    fill(api, customer, LIMIT + 1)
    statuses = []
    for number in range(1, LIMIT + 2):
        token = second_token(db, other.account_id, Scope.CUSTOMER, now=clock())
        statuses.append(probe(api.as_(token), other, number).status_code)
    assert statuses == [422] * LIMIT + [429]
    assert taken_today(db, clock) == {other.account_id: LIMIT}


def test_after_the_limit_nothing_is_learned_without_a_stored_record(
    api: Api, prober: Api, db: Database, customer: Customer, other: Customer, desk: Desk
) -> None:
    """Records with faults, dry runs and comparisons write nothing: a taken value gets the same
    answer as a free one.
    """
    fill(api, customer, LIMIT + 3)
    for number in range(1, LIMIT + 1):
        assert probe(prober, other, number).status_code == 422
    before = members_of(db, other)

    def faulty(number: int) -> Any:
        return prober.post(path_of(other), member_body(number, gender="wrong")).json()["errors"]

    assert faulty(LIMIT + 1) == faulty(777)
    taken = row(LIMIT + 1, external_id="P1", member_id="P1", email=f"robin.{LIMIT + 1}@example.com")
    free = row(778, external_id="P2", member_id="P2", email="free@example.com")
    rehearsed = desk.load(csv_of([taken, free]), dry_run=True)
    assert (rehearsed.counts, rehearsed.codes) == ({"created": 2}, {})
    assert members_of(db, other) == before


def test_each_of_the_three_keys_counts_and_a_record_counts_once(
    api: Api, prober: Api, db: Database, customer: Customer, other: Customer, clock: SetClock
) -> None:
    fill(api, customer, 1)
    ours = member_body(2)
    assert prober.post(path_of(other), ours).status_code == 201
    taken = (
        {"external_id": "AB 000001"},
        {"member_id": "M-000001"},
        {"email": "ROBIN.1@example.com"},
    )
    for changes in (*taken[1:], taken[1] | taken[2]):
        assert prober.post(path_of(other), ours | changes).status_code == 422
    assert prober.post(path_of(other), taken[0]).status_code == 422
    assert taken_today(db, clock) == {other.account_id: 4}
    metrics = api.as_(make_operator(db).token).get("/metrics").text
    assert f'frontdesk_uniqueness_taken{{account_id="{other.account_id}"}} 4.0' in metrics
    assert "frontdesk_uniqueness_accounts_at_limit 0.0" in metrics


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
    # Its own members are updated with all their keys, by it and by others; the neighbour in the
    # chunk notices nothing.
    assert prober.post(path_of(other), ours[0] | {"last_name": "Changed"}).status_code == 200
    assert prober.post(path_of(other), ours[0] | {"email": "new@example.com"}).status_code == 200
    assert (
        prober.post(path_of(other), ours[0] | {"email": "robin.1@example.com"}).status_code == 429
    )
    # A value of its own other member is no secret.
    assert prober.post(path_of(other), ours[0] | {"member_id": "M-000102"}).status_code == 422
    assert api.post(path_of(customer), member_body(201)).status_code == 201


def test_a_process_that_has_seen_no_probe_gives_no_answer_beyond_the_limit(
    api: Api, prober: Api, config: Config, customer: Customer, other: Customer, desk: Desk
) -> None:
    """Not by a POST, a file, a dry run, an undo or the undo of one; records with values of their
    own go on in each of them.
    """
    fill(api, customer, LIMIT)
    db = desk.db
    clock = desk.clock
    desk.client = other.client_id
    others = Desk(db, customer, clock)
    free, taken = (desk.undo(desk.load(csv_of([row(number)]))) for number in (701, 702))
    others.load(csv_of([row(702), row(704, email="old@example.com")]))
    renamed = [
        desk.load(csv_of([row(711, last_name=name, member_id=name)])) for name in ("Old", "New")
    ][1]
    second = App(config, open_for_test(config.database_url, "second"), clock)
    with TestClient(build_asgi(second, Telemetry(io.StringIO()))) as http:
        fresh = Api(http, other.token, io.StringIO())
        # it told nothing by then
        assert fresh.post(path_of(other), member_body(801)).status_code == 201
        for number in range(1, LIMIT + 1):
            assert probe(prober, other, number).status_code == 422
        assert [probe(fresh, other, number).status_code for number in (802, 1)] == [201, 429]
    rehearsed = [desk.load(csv_of([row(number)]), dry_run=True) for number in (703, 704)]
    assert [file.codes for file in rehearsed] == [{}, {}]
    loaded = [desk.load(csv_of([row(number)])) for number in (703, 704)]
    assert [file.codes for file in loaded] == [{}, {"too_many_taken": 1}]
    undone = [desk.undo(undo) for undo in (free, taken, renamed)]
    assert [undo.codes for undo in undone] == [{}, {"too_many_taken": 1}, {}]
    assert taken_today(db, SetClock(NOW)) == {other.account_id: LIMIT}
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

    def note_and_save(probes: Probes, tx: Any) -> None:
        if current_thread() is not main_thread():
            has_decided.set()
        save(probes, tx)

    save = Probes.save
    monkeypatch.setattr(Probes, "save", note_and_save)
    with ThreadPoolExecutor(1) as thread:
        later: list[Future[list[Any]]] = []

        def let_the_other_decide() -> None:
            later.append(thread.submit(tell, range(LIMIT, 2 * LIMIT + 1), lambda: None))
            if not db.is_sqlite:  # which has one writer
                assert has_decided.wait(PATIENCE_SECONDS)

        first = tell(range(1, LIMIT), let_the_other_decide)
        answers = Counter(type(answer) for answer in (*first, *later[0].result()))
    assert answers == {Invalid: LIMIT, TooManyTaken: LIMIT}
    assert taken_today(db, clock) == {other.account_id: LIMIT}


def test_a_dry_run_learns_no_more_than_the_limit_and_leaves_its_trace(
    db: Database,
    others: Desk,
    other: Customer,
    clock: SetClock,
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("frontdesk.files.check.LOOKUP_KEYS", 300)
    others.load(csv_of(row(n, email=f"member.{n}@example.com") for n in range(1_000)))
    desk.load(csv_of([row(5_000)]))
    theirs = [
        row(n, external_id=f"P{n}", member_id=f"P{n}", email=f"member.{n}@example.com")
        for n in range(999)
    ]
    file = desk.load(csv_of(theirs), dry_run=True)
    assert (file.state, file.codes) == ("done", {"email_taken": LIMIT})
    assert file.counts == {"created": 999, "warned": LIMIT}
    assert {entry[:3] for entry in trail(db)} == {("client-1", other.account_id, file.id)}
    assert trail(db)[-1][-1] == LIMIT
    assert taken_today(db, clock) == {other.account_id: LIMIT}
    # Nor does the account learn more by the next file. Its own members change, and new ones are
    # stored.
    changed = [*theirs[:10], row(90_000), row(5_000, last_name="Changed")]
    file = desk.load(csv_of(changed), mode=FileMode.FULL)
    assert (file.codes, file.counts) == (
        {"too_many_taken": 10},
        {"refused": 10, "updated": 1, "created": 1},
    )
    clock.advance(86_400)
    file = desk.load(csv_of(theirs[:1]))
    assert (file.counts, file.codes) == ({"created": 1, "warned": 1}, {"email_taken": 1})


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
    assert (redo.counts, redo.codes) == (
        {"refused": LIMIT + 2},
        {"not_unique": LIMIT, "too_many_taken": 2},
    )
    assert {entry[:3] for entry in trail(db)} == {("client-1", other.account_id, redo.id)}
    assert desk.undo(free).counts == {"restored": 1, "gained": 1}  # no other account has its values
    assert desk.undo(to_withdraw).counts == {"withdrawn": 1, "lost": 1}
    assert taken_today(db, clock) == {other.account_id: LIMIT}
