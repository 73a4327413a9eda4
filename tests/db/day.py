"""An installation that lives through a day: each kind of request, of work on files, of delivery and
of upkeep.
"""

import io
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.access import find_account_names, find_client_names
from frontdesk.app import App
from frontdesk.audit import AuditQuery, Requester, list_by_user, list_entries
from frontdesk.cli.invitations import describe_mail
from frontdesk.config import Uniqueness, read_config
from frontdesk.db import Tx, open_database
from frontdesk.db.migrate import upgrade
from frontdesk.disclosures import (
    check_answer,
    find_search,
    list_entries_about,
    open_names,
    open_record,
    read_covered,
    read_names,
    search,
)
from frontdesk.disclosures.another_address import MailSender, NewAddress, change_address
from frontdesk.disclosures.change_form import view_change_form
from frontdesk.disclosures.looks import LAST
from frontdesk.disclosures.model import (
    CallersWords,
    CheckedField,
    FileNames,
    Holder,
    Opening,
    OpeningReason,
)
from frontdesk.disclosures.person import Viewer, view_person
from frontdesk.disclosures.trail import (
    read_trail,
    read_trail_about_file,
    read_trail_about_person,
    read_trail_by_user,
)
from frontdesk.eligibility import derive_due, enrol
from frontdesk.eligibility.people import (
    call_distinct,
    find_duplicates,
    find_eligibility,
    find_member,
    lock_pair,
    merge,
    rename,
    unmerge,
)
from frontdesk.eligibility.person_change import (
    AskedChange,
    ChangeAnswer,
    Correction,
    change_person,
    read_version,
)
from frontdesk.eligibility.search import (
    ByBirthDate,
    ByEmail,
    ByExternalId,
    find_similar_to,
    get_covered,
    search_people,
)
from frontdesk.errors import NotFound
from frontdesk.events import claim_due, pass_over
from frontdesk.events.delivery import Progress, save
from frontdesk.files.actions import find_files, get_file
from frontdesk.files.approvers import find_obstacle
from frontdesk.files.claims import RunOptions
from frontdesk.files.drafts import applied_file, steps, unfinished_drafts
from frontdesk.files.drafts.steps import DraftKey, DraftUpload, NewDraft
from frontdesk.files.faults import group_faults
from frontdesk.files.model import Draft, FileFilter, FileKey, FileState
from frontdesk.files.overview import find_undos, read_ended, read_overview, read_page, read_view
from frontdesk.files.report import ReportCursor, ReportFilter
from frontdesk.files.report_rows import row_page
from frontdesk.files.store import set_file_settings
from frontdesk.files.turns import FileTurns
from frontdesk.formats.model import FileMode
from frontdesk.installation import build_asgi
from frontdesk.invitations.protocol import DeliveryContext, expire_leases
from frontdesk.invitations.unproven import vouch_for
from frontdesk.plans.changes import change_provider_group
from frontdesk.privacy import find_place_of
from frontdesk.privacy.erasure import (
    erase_person,
    export_person,
    find_persons,
    place_hold,
    release_hold,
)
from frontdesk.privacy.model import RetentionKind
from frontdesk.privacy.retention import RetentionTurn, retention_days
from frontdesk.queues import count_lapsed
from frontdesk.queues.board import read_board, read_day
from frontdesk.queues.ingest import ingest
from frontdesk.queues.lapses import end_lapsed_duties, take_back_lapses
from frontdesk.queues.model import EstimateRecords, EventType, QueueEvent
from frontdesk.queues.snapshot import counted
from frontdesk.queues.upkeep import DEFAULT_AGE, prune
from frontdesk.reach import EVERY, Reach
from frontdesk.system.state import list_account_rows, read_system
from frontdesk.text import wire_time
from frontdesk.usage.request_costs import save as save_request_costs
from frontdesk.users.directory import list_home, list_users
from frontdesk.web.telemetry import Telemetry
from frontdesk.worker.background import SignOfLife
from frontdesk.worker.delivery import policy_of
from frontdesk.worker.webhooks import WebhookSender
from tests.conftest import Api, SetClock
from tests.events.receiver import set_verified
from tests.factories import (
    EVERY_SCOPE,
    NOW,
    make_customer,
    make_operator,
    member_body,
    second_token,
)
from tests.files.loading import Desk, csv_of, row
from tests.users.conftest import Desk as ConsoleDesk
from tests.users.day import use_console
from tests.worker.conftest import Post


class _TakenBackError(Exception):
    """The transaction is not to be committed."""


class Installation:
    """A service, its worker and its loader on one database, and what they do in the course of a
    day.
    """

    def __init__(self, url: str, stack: ExitStack, *, uniqueness: str = "service") -> None:
        self.config = config = read_config(
            {"FRONTDESK_DATABASE_URL": url, "FRONTDESK_BASE_URL": "http://127.0.0.1:8000"}
            | {"FRONTDESK_UNIQUENESS": uniqueness}
        )
        self.db = open_database(url)
        stack.callback(self.db.close)
        upgrade(self.db, uniqueness=config.uniqueness.value)
        self.clock = SetClock(NOW)
        self.app = App(config, open_database(url), self.clock)
        self.served = self.app.db
        asgi = build_asgi(self.app, Telemetry(io.StringIO()))
        http = stack.enter_context(TestClient(asgi))
        self.customer = make_customer(self.db, plan_count=3)
        self.neighbour = make_customer(self.db, name="Neighbour", plan_count=1)
        self.tester = make_customer(self.db, name="Tester", plan_count=1, scopes=EVERY_SCOPE)
        operator = make_operator(self.db)
        self.api = Api(http, self.customer.token, io.StringIO())
        self.operator = self.api.as_(operator.token)
        self.reader = self.api.as_(second_token(self.db, self.customer.account_id, *EVERY_SCOPE))
        self.post = Post(config, self.db, self.clock, self.customer)
        self.post.batches()
        self.desk = Desk(self.db, self.customer, self.clock)
        self.desk.options = RunOptions(config.uniqueness)
        self.number = 10_000_000

    def restart(self) -> None:
        """SQLite tells a connection of statistics when it is opened. PostgreSQL's stay: they have
        plans of before.
        """
        if self.db.is_sqlite:
            self.db.engine.dispose()
            self.served.engine.dispose()

    def a_day(self) -> None:
        """Each kind of request, of work on files, of delivery and of upkeep."""
        self.number += 1000
        self._read_events(self.number + 70)
        self._serve(self.number)
        self._decide_about_people(self.number + 50)
        self._load_files(self.number + 100)
        self._deliver(self.number + 900)
        self._queue(self.number)
        use_console(ConsoleDesk(self.db, self.clock, self.customer), self.number)

    def _enrol(self, body: dict[str, Any], status: int = 201, *, plan: int = 0) -> Any:
        answer = self.api.post(f"/v2/plans/{self.customer.plan_ids[plan]}/eligibility", body)
        assert answer.status_code == status
        return answer

    def _serve(self, n: int) -> None:
        plan = self.customer.plan_ids[0]
        self._enrol(member_body(n))
        self._enrol(member_body(n, last_name="Changed"), 200)
        some = [member_body(n + 10 + i) for i in range(40)]
        for keyed in ({"Idempotency-Key": f"batch-{n}"},) * 2:
            answer = self.api.post(f"/v2/plans/{plan}/eligibility/batch", some, headers=keyed)
            assert answer.json()["counts"]["created"] == 40
        member = f"/v2/plans/{plan}/eligibility/{self._enrol(member_body(n + 60)).json()['id']}"
        assert self.api.post(member + "/end", {"on": "2027-01-31"}).status_code == 200
        assert self.api.post(member + "/rename", {"external_id": f"R {n}"}).status_code == 200
        self._enrol(member_body(n), 200, plan=1)  # moves it
        taken = member_body(n, external_id=f"N{n}", member_id=f"N{n}")
        address = f"/v2/plans/{self.neighbour.plan_ids[0]}/eligibility"
        told = self.api.as_(self.neighbour.token).post(address, taken).status_code
        assert told == (422 if self.config.uniqueness is Uniqueness.SERVICE else 201)
        self._read_members(n)
        for url in ("/v2/plans", f"/v2/plans/{plan}", "/readyz"):
            assert self.api.get(url).status_code == 200
        assert self.operator.get("/metrics").status_code == 200
        for body in (member_body(n, city="Keyed"), member_body(n, city="Keyed")):
            headers = {"Idempotency-Key": f"member-{n}"}
            address = f"/v2/plans/{plan}/eligibility"  # which it left before
            assert self.api.post(address, body, headers=headers).headers["Eligibility-Left-Plan"]
        for name in (f"Plan {n}", f"Plan {n}"):
            headers = {"Idempotency-Key": f"plan-{n}"}
            assert (
                self.api.patch(f"/v2/plans/{plan}", {"name": name}, headers=headers).status_code
                == 200
            )
        who = (self.customer.client_id, self.customer.client_secret)
        ask = partial(self.api.post, "/oauth/token", data={"grant_type": "client_credentials"})
        token = {"token": ask(auth=who).json()["access_token"]}
        assert self.api.post("/oauth/revoke", data=token, auth=who).status_code == 200
        assert ask(auth=(who[0], "x")).status_code == 401

    def _look_for_people(self, n: int, member_id: int) -> None:
        reach = Reach.of(self.customer.account_id)
        ways = (
            ByExternalId(f"AB {n:06d}"),
            ByEmail(f"robin.{n}@example.com"),
            ByBirthDate("1977-01-11", "sam"),
        )
        with self.db.read() as tx:
            for by in ways:
                search_people(tx, reach, by, now=self.clock())
            search_people(tx, EVERY, ways[0], now=self.clock())
            find_similar_to(tx, reach, member_id, now=self.clock())
            get_covered(tx, reach, member_id, now=self.clock())
        user = Requester("user:1", "request", self.clock())
        with self.db.write() as tx:
            check_answer(
                tx, user, reach, CallersWords(member_id, 1, CheckedField.DOB, "1977-01-11")
            )
            open_record(tx, user, reach, Opening(member_id, OpeningReason.AUDIT, f"{n}", 1))
            view_person(
                tx,
                user,
                reach,
                member_id,
                Viewer(MailSender(1, vouches=False), reach, has_relay=True),
            )
            number, found = search(tx, user, self.customer.account_id, 1, ways[0])
        self._change_a_person(member_id)
        with self.db.read() as tx:
            assert find_search(tx, reach, Holder(user.actor, 1), number, now=self.clock()) == found
            assert list_entries_about(tx, reach, member_id, size=3).before_id
            read_covered(tx, reach, member_id, now=self.clock())
            find_place_of(tx, member_id, file_id=1)
        self._read_trail(user, member_id)
        read_system(self.db, self.config, self.clock())

    def _read_trail(self, user: Requester, member_id: int) -> None:
        own = Reach.of(self.customer.account_id)
        with self.db.write() as tx:
            for reach in (own, EVERY):
                assert read_trail(tx, user, reach).entries
                list_home(tx, reach.account_id, with_ended=True)
                for user_id in [each.id for each in list_users(tx, reach)[:1]]:
                    read_trail_by_user(tx, user, reach, user_id)
            assert read_trail_about_person(tx, user, own, member_id).entries
            for file in find_files(tx, FileFilter(own, 1)):
                read_trail_about_file(tx, user, own, file.id)
            assert list_by_user(tx, "user:1", before_id=LAST, limit=50)
            for reach in (own, EVERY):
                assert list_entries(tx, reach, AuditQuery(subject_id=member_id))
            assert list_account_rows(tx, size=1).after_id
            find_account_names(tx, {1})
            find_client_names(tx, own, {self.customer.client_id})

    def _change_a_person(self, member_id: int) -> None:
        """Taken back at the end: the day goes on with the person as it was."""
        reach = Reach.of(self.customer.account_id)
        user = Requester("user:1", "request", self.clock())
        with suppress(_TakenBackError), self.db.write() as tx:
            sender = MailSender(1, vouches=False)
            form = view_change_form(tx, user, reach, member_id, sender, shows_values=True)
            change = Correction({"city": "Salem"})
            asked = AskedChange(member_id, form.version, change, is_confirmed=True)
            uniqueness = self.config.uniqueness
            made = change_person(tx, user, reach, asked, uniqueness=uniqueness)
            assert isinstance(made, ChangeAnswer)
            version = read_version(tx, member_id)
            address = NewAddress(member_id, version, "another@example.com", is_mailed=False)
            change_address(tx, user, reach, address, sender, uniqueness=uniqueness)
            vouch_for(tx, member_id, address.email)
            raise _TakenBackError

    def _read_members(self, n: int) -> None:
        members = f"/v2/plans/{self.customer.plan_ids[1]}/eligibility"
        named = (
            f"?external_id=AB%20{n:06d}",
            f"?member_id=M-{n:06d}",
            f"?email=robin.{n}@example.com",
        )
        [found] = [self.reader.get(members + query).json()["data"][0]["id"] for query in named[:1]]
        for query in named:
            assert self.reader.get("/v2/eligibility" + query).json()["data"][0]["id"] == found
        for after in ("", "&page[after]=50"):
            person = f"/v2/eligibility?last_name=sample&dob=1977-01-11{after}"
            assert self.reader.get(person).status_code == 200
        self._look_for_people(n, found)
        for path in (
            f"{members}/{found}",
            f"{members}/{found}/history",
            f"{members}/{found}/history?page[after]=1",
        ):
            assert self.reader.get(path).status_code == 200
        listed = f"/v2/plans/{self.customer.plan_ids[0]}/eligibility?page[size]=100"
        days = "&eligible_on=2026-11-20", "&eligible_on=2020-01-01"
        for query in (
            "",
            "&page[after]=50",
            *days,
            *(f"&updated_since={y}-11-20T12:00:00Z" for y in (2026, 2030)),
        ):
            assert self.reader.get(listed + query).status_code == 200

    def _read_events(self, n: int) -> None:
        whole = self.reader.get("/v2/events")
        assert whole.status_code == 200
        for event in whole.json()["data"][:1]:
            query = f"?page[after]={event['id']}&page[size]=20"
            assert self.reader.get("/v2/events" + query).status_code == 200
        assert self.reader.get("/v2/events?page[after]=evt_1_999999999").status_code == 410
        # nothing listens there
        made = self.reader.post("/v2/webhook-endpoints", {"url": "http://127.0.0.1:9/"})
        endpoint_id = made.json()["data"]["id"]
        endpoint = f"/v2/webhook-endpoints/{endpoint_id}"
        self._send_webhooks()  # the test of the address, which fails
        set_verified(self.db, endpoint_id)
        assert self.reader.post(endpoint + "/test").status_code == 202
        self._enrol(member_body(n))
        event = self.reader.get("/v2/events").json()["data"][0]
        for again in ({"event_id": event["id"]}, {"since": event["timestamp"]}):
            assert self.reader.post(endpoint + "/replay", again).status_code == 202
        with self.db.write() as tx:
            pass_over(tx, [endpoint_id], self.clock())
            [claimed] = claim_due(tx, [endpoint_id], self.clock())
        assert self.reader.patch(endpoint, {"event_types": []}).status_code == 200
        assert self.reader.patch(endpoint, {"url": "http://127.0.0.1:9/moved"}).status_code == 200
        set_verified(self.db, endpoint_id)
        with self.db.write() as tx:  # a worker that has lost its claim by that
            nothing = Progress(claimed.place, delivered=False)
            assert save(tx, claimed, nothing, now=self.clock(), ends=True) is None
        self._send_webhooks()
        assert self.reader.get(endpoint).json()["data"]["attempts"] == 1
        for method, path in (("PATCH", ""), ("POST", "/rotate"), ("DELETE", "")):
            body = {"json": {"state": "paused"}} if method == "PATCH" else {}
            assert self.reader.request(method, endpoint + path, **body).status_code in (200, 204)
        assert self.reader.get("/v2/webhook-endpoints").json()["data"] == []

    def _send_webhooks(self) -> None:
        sender = WebhookSender(self.config, self.db, read_time=lambda _: self.clock())
        sender.step()
        sender.close()

    def _decide_about_people(self, n: int) -> None:
        actor = Requester("someone", "r", self.clock())
        for number in (n, n + 1):
            posted = self._enrol(member_body(number, last_name="Alike", first_name=f"One {n}"))
            assert ("similar_member" in posted.headers.get("Eligibility-Warnings", "")) is (
                number > n
            )
        places: dict[str, Any] = {
            "after": (0, 0),
            "limit": 5,
            "today": NOW.date().isoformat(),
            "track": iter,
        }
        found = find_duplicates(self.db, Reach.of(self.customer.account_id), **places)
        names = (f"AB {n:06d}", f"AB {n + 1:06d}")
        with self.db.write() as tx:
            kept, dropped = lock_pair(tx, EVERY, *names)
            assert (kept["id"], dropped["id"]) in {each[:2] for each in found}
            merge(tx, kept, dropped, actor)
        merged = {"external_id": f"AB {n + 1:06d}", "city": "Salem"}
        assert self._enrol(merged, 200).json()["id"] == kept["id"]
        self.db.ask(lambda tx: find_eligibility(tx, EVERY, merged["external_id"], on="2026-01-01"))
        rule = self.config.uniqueness
        with self.db.write() as tx:
            unmerge(tx, *lock_pair(tx, EVERY, *names), actor, uniqueness=rule)
            call_distinct(tx, kept, dropped, actor)
            decide = partial(enrol, now=self.clock(), uniqueness=rule)
            assert rename(tx, [(f"AB {n:06d}", f"N {n}")], EVERY, actor, decide) == ["renamed"]

    def _load_files(self, n: int) -> None:
        for first, count in ((0, 50), (100, 400)):  # a set is one parameter, or a COPY
            rows = [row(n + first + i, email=f"e{n + first + i}@example.com") for i in range(count)]
            self.desk.load(csv_of(rows))
            changed = self.desk.load(csv_of([one | {"zipcode": "02135"} for one in rows]))
            assert changed.counts["updated"] == count
            assert self.desk.undo(changed).counts["restored"] == count
        rows = [row(n + 600 + i) for i in range(3)]
        self.desk.load(csv_of(rows), plan=2, full=True)
        refused = rows[0] | {"external_id": f"R{n}", "zipcode": "1"}
        kept = self.desk.load(csv_of([*rows[1:], refused]), plan=2, full=True)
        assert kept.counts["kept"] == 1
        assert self.desk.load(csv_of(rows[1:]), plan=2, full=True).counts["ended"] == 1
        assert self.desk.load(csv_of(rows), plan=2, full=True).counts["reopened"] == 1
        self._look_at_files(csv_of(rows[:1]))
        self._upload_by_steps(csv_of(rows[:1]))
        moved = self.desk.load(csv_of(rows[:1]), plan=1)
        assert moved.counts["moved"] == 1
        assert self.desk.report(moved)
        self._look_at_files_as_a_user()
        self._begin_tomorrow(rows[1])

    def _look_at_files_as_a_user(self) -> None:
        account_id = self.customer.account_id
        reach = Reach.of(account_id)
        now = self.clock()
        with self.db.read() as tx:
            found = read_overview(tx, account_id, now=now)
            newest = found.ended[0]
            read_ended(tx, account_id, before_id=newest.id, now=now)
            read_page(tx, reach, state=FileState.DONE, plan_id=newest.plan_id)
            read_page(tx, reach, plan_id=newest.plan_id, before_id=newest.id)
            find_undos(tx, found.ended)
            view = read_view(tx, FileKey(newest.id, reach))
            wanted = ReportFilter(next(iter(view.file.counts)))
            rows, _ = row_page(tx, newest.id, wanted, after=ReportCursor(), size=25)
        user = Requester("user:1", "request", now)
        names = FileNames(newest.id, session_id=1)
        with self.db.write() as tx:
            open_names(tx, user, reach, names, OpeningReason.AUDIT, f"{self.number}")
            read_names(tx, user, reach, names, [each.member_id for each in rows])

    def _begin_tomorrow(self, of_today: dict[str, Any]) -> None:
        """A member of another plan from tomorrow on: a worker moves it."""
        tomorrow = (self.clock() + timedelta(days=1)).date().isoformat()
        self.desk.load(csv_of([of_today | {"effective_date": tomorrow}]), plan=1)
        for after in (None, ("2000-01-01", 0)):
            with self.db.write() as tx:
                page = derive_due(tx, now=self.clock() + timedelta(days=2), after=after)
            assert page.derived == (after is None)

    def _look_at_files(self, content: bytes) -> None:
        of_plan = f"/v2/plans/{self.customer.plan_ids[2]}/eligibility-files"
        headers = {"Content-Type": "text/csv", "Idempotency-Key": f"key-{self.number}"}
        upload = partial(
            self.api.request, "POST", of_plan + "?mode=full&dry_run=true", headers=headers
        )
        file, again = (upload(content=content).json()["data"] for _ in range(2))
        assert file["id"] == again["id"]
        turns = FileTurns(self.db, self.clock, self.desk.options, slice_seconds=0.0)
        while turns.take():
            pass
        queries = (
            "",
            "?page[size]=2",
            "?page[after]=1000000",
            "?state=done",
            f"?sha256={file['sha256']}",
        )
        for path in (
            path + query for query in queries for path in ("/v2/eligibility-files", of_plan)
        ):
            assert self.api.get(path).status_code == 200
        report = f"{of_plan}/{file['id']}/report?page[size]=1"
        for listed in ("outcome=would_end", "outcome=lost", "code=ended_by_absence"):
            assert '"would_end"' in self.api.get(f"{report}&{listed}").text
        ended = self.db.ask(lambda tx: get_file(tx, FileKey(file["id"], EVERY)))
        with self.db.write() as tx:
            set_file_settings(tx, self.customer.account_id, second_approver=True)
            assert find_obstacle(tx, ended, self.customer.client_id)
            assert not find_obstacle(tx, replace(ended, client="cli:ana"), ended.client)
            set_file_settings(tx, self.customer.account_id, second_approver=False)
        assert [group.code for group in self.db.ask(lambda tx: group_faults(tx, ended))]
        for listed in ("outcome=warned", "outcome=unchanged", "outcome=gained", "external_id=x"):
            assert self.api.get(f"{report}&{listed}").status_code == 200

    def _upload_by_steps(self, content: bytes) -> None:
        """A draft that is applied, one that is discarded, and one that grows too old."""
        account = self.customer.account_id
        draft, discarded, _ = (self._begin_draft(content) for _ in range(3))
        self._step(discarded, steps.discard)
        suggest = partial(steps.suggest, self.db, draft.id, Reach.of(account), now=self.clock())
        draft = suggest(today="2026-11-22", make=lambda *_, **__: {"rows": 1})
        of_plan = {"plan_id": self.customer.plan_ids[2], "mode": FileMode.CHANGE}
        draft = self._step(draft, steps.set_plan_and_mode, **of_plan)
        draft = self._step(draft, steps.set_mapping, mapping={})
        for take in (steps.dry_run, steps.apply):
            draft, file = self._step(draft, take)
            assert self.desk.work(file).state == "done"
        drafts = self.db.ask(lambda tx: steps.list_drafts(tx, account, now=self.clock()))
        assert [each.state for each in drafts] == ["open"]
        assert len(self.db.ask(lambda tx: unfinished_drafts(tx, account))) == 3
        steps.delete_left_drafts(self.db, self.clock() + timedelta(days=2))
        assert self.db.ask(lambda tx: unfinished_drafts(tx, account)) == []
        assert self.db.ask(lambda tx: applied_file(tx, draft.id, account)) == draft.file_id

    def _begin_draft(self, content: bytes) -> Draft:
        by = self.desk.requester()
        with self.db.write() as tx:
            begun = steps.begin_draft(tx, NewDraft(self.customer.account_id, "census.csv"), by)
        upload = DraftUpload(self.db, begun, self.clock)
        upload.write(content)
        return upload.finish(by)

    def _step(self, draft: Draft, take: Any, **more: Any) -> Any:
        key = DraftKey(draft.id, draft.version)
        reach = Reach.of(draft.account_id)
        with self.db.write() as tx:
            return take(tx, key, reach, self.desk.requester(), **more)

    def _deliver(self, n: int) -> None:
        self._enrol(member_body(n, email=f"x{n}@example.com", invite_immediately=True))
        self._enrol(member_body(n + 1, email=None))
        self.clock.advance(100)  # a new batch
        worker = self.post.worker()
        while worker.turn():
            pass
        SignOfLife(self.db, worker.status, clock=self.clock).step()
        save_request_costs(self.db, self.app.request_costs.take(), self.clock())
        message = self.post.mailer.messages[-1]
        report = {"events": [{"message_id": message.message_id, "event": "complained"}]}
        answer = self.operator.post("/operator/v1/email-events", report)
        assert answer.json()["results"] == [{"result": "applied"}]
        with self.db.write() as tx:
            expire_leases(tx, DeliveryContext(policy_of(self.config)), now=self.clock())
        self._ask(n)

    def _ask(self, n: int) -> None:
        """An operator asks for a member by each of its names, and where its mail is."""
        with self.db.read() as tx:
            member = find_member(tx, EVERY, f"AB {n:06d}")
            for who in (member["member_id"], member["email"], str(member["id"])):
                for reach in (EVERY, Reach.of(member["account_id"])):
                    assert find_member(tx, reach, who) == member
            with pytest.raises(NotFound):
                find_member(tx, EVERY, f"{n}{n}")
            for shown, reason in (
                (member, "accepted"),
                (find_member(tx, EVERY, f"AB {n + 1:06d}"), "no_email"),
            ):
                assert describe_mail(tx, shown, [shown["id"]])["mail"]["reason"] == reason

    def forget(self) -> None:
        """One member is exported, held, released and erased by request, another one by retention,
        others by a reset.
        """
        n = self.number + 950
        for i in range(2):
            self._enrol(member_body(n + i, email=f"f{n + i}@example.com", invite_immediately=True))
        actor = Requester("someone", "request", self.clock())
        [person] = self.db.ask(lambda tx: find_persons(tx, EVERY, f"AB {n:06d}"))
        export_person(self.db, person, actor)
        with self.db.write() as tx:
            place_hold(tx, person, "Case", actor)
            release_hold(tx, person, actor)
        erase_person(self.db, [person], actor)
        self._enrol({"external_id": f"AB {n + 1:06d}", "expiry_date": "2026-01-02"}, 200)
        kept = retention_days(self.config) | {RetentionKind.ENDED: 300, RetentionKind.COUNTERS: 0}
        turn = RetentionTurn(self.db, self.clock, kept, actor)
        assert turn.count()[RetentionKind.ENDED] == turn.run()[RetentionKind.ENDED] == 1
        self._start_over(n + 20)

    def _start_over(self, n: int) -> None:
        """An account of the sandbox is reset: its member, which always gets a 503 first, and a file
        of its own.
        """
        api = self.api.as_(self.tester.token)
        plan = self.tester.plan_ids[0]
        own = member_body(n, external_id=f"sandbox-loses-answer+{n}", invite_immediately=True)
        for status in (503, 200):
            assert api.post(f"/v2/plans/{plan}/eligibility", own).status_code == status
        sent = {"content": csv_of([row(n + 1)]), "headers": {"Content-Type": "text/csv"}}
        assert api.request("POST", f"/v2/plans/{plan}/eligibility-files", **sent).status_code == 202
        answer = api.post("/sandbox/reset").json()["data"]
        assert (answer["files"], answer["members"]) == (1, 1)

    def _lapse(self, tx: Tx, n: int) -> None:
        """A duty lapses, and a visit that comes late takes that back."""
        now = self.clock()
        begin = now - timedelta(hours=70)
        doctor = f"doctor-late-{n}"
        ingest(
            tx, [QueueEvent(f"on-{n}", EventType.DOCTOR_ON_DUTY, begin, 1, doctor=doctor)], now=now
        )
        assert end_lapsed_duties(tx, now)
        visit: dict[str, Any] = {
            "provider_group_id": 1,
            "plan_id": self.customer.plan_ids[0],
            "visit": doctor,
        }
        started = now - timedelta(hours=1)
        start = QueueEvent(f"start-{n}", EventType.VISIT_STARTED, started, doctor=doctor, **visit)
        ingest(tx, [start], now=now)
        assert take_back_lapses(tx, now)
        end = QueueEvent(f"end-{n}", EventType.VISIT_ENDED, now, **visit)
        off = QueueEvent(f"off-{n}", EventType.DOCTOR_OFF_DUTY, now, 1, doctor=doctor)
        ingest(tx, [end, off], now=now)

    def _queue(self, n: int) -> None:
        types = ("patient.joined", "visit.started", "visit.ended")
        seen = {"visit": f"v{n}", "plan_id": self.customer.plan_ids[0], "doctor": "doctor-1"}
        seen |= {"at": wire_time(self.clock()), "class": "new"}
        events = [seen | {"id": f"{type_}-{n}", "type": type_} for type_ in types]
        until = wire_time(self.clock() + timedelta(minutes=20))
        paused = seen | {"provider_group_id": 1, "type": "doctor.paused", "until": until}
        events.append(paused | {"id": f"paused-{n}"})
        answer = self.operator.post("/operator/v1/queue-events", {"events": events})
        assert answer.json()["stored"] == 4
        with self.db.write() as tx:
            change_provider_group(tx, 1, duty_hours=13 + n % 50)
            self._lapse(tx, n)
            count_lapsed(tx, self.clock() - timedelta(days=1))
            prune(tx, now=self.clock(), age=DEFAULT_AGE)
            records = EstimateRecords(self.clock() - timedelta(hours=1), {})
            counted(tx, self.customer.account_id, records, self.clock())
            for reach in (Reach.of(self.customer.account_id), EVERY):
                read_board(tx, reach, self.clock())
                read_day(tx, reach, self.customer.plan_ids[0], self.clock())
