"""Every function of a store runs on SQLite and on PostgreSQL: in a day of an installation, and in
what its operators do.
"""

import ast
import json
import shlex
import sys
import threading
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from types import FrameType

import pytest

from frontdesk import queues
from frontdesk.access.accounts import list_secrets
from frontdesk.audit import AuditEntry, Requester, record
from frontdesk.eligibility import find_digests_of, last_member_id
from frontdesk.eligibility.search import ByExternalId, find_similar_to, get_covered, search_people
from frontdesk.files.actions import begin_file, delete_left_content
from frontdesk.files.model import NewFile
from frontdesk.invitations.model import InvitationState
from frontdesk.invitations.protocol import DeliveryContext, seconds_to_work
from frontdesk.mailbox import list_messages
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.privacy.retention import RetentionTurn, retention_days
from frontdesk.queues.board import read_board, read_day
from frontdesk.queues.snapshot import queue_state
from frontdesk.queues.store.events import list_history
from frontdesk.reach import EVERY, Reach
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions, policy_of
from tests.cli.conftest import CommandLine
from tests.db.day import Installation
from tests.factories import NOW, make_customer, member_body
from tests.formats.reading import MEMBER, interchange, transaction
from tests.invitations.mails import mailed
from tests.queues.feed import JOINED, event, feed

PACKAGE = Path(__file__).parents[2] / "src/frontdesk"
STORES = {str(path) for pattern in ("*store.py", "store/*.py") for path in PACKAGE.rglob(pattern)}

FUNCTIONS = {
    (path, node.name)
    for path in STORES
    for node in ast.walk(ast.parse(Path(path).read_text()))
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
}
BY_OPERATORS = """
    account limit 2 --immediate-per-hour 500
    account suspend 2
    account resume 2
    account list --usage
    account quota 1 --stored-gib 32
    client secrets {client}
    client rotate {client}
    client revoke-secret {client} {secret}
    client revoke-tokens {client}
    client revoke {client}
    file settings --account 1 --no-second-approver
    file mapping --account 1 --name m --set {folder}/mapping.json
    file mapping --account 1 --name m --clear
    template set --account 1 --subject Welcome
    suppression add a@example.com
    suppression remove a@example.com
    suppression list
    invitations list
    invitations list --member {ambiguous_member}
    member show {ambiguous_member}
    invitations show 1
    invitations settle {ambiguous} --as sent
    invitations resend {ambiguous}
    invitations resend --state failed --since 2020-01-01
    invitations forecast --account 1
    invitations hold
    invitations release --keep-back
    mailbox list
    mailbox show {caught}
    mailbox clear
    queue list
    queue accuracy --hours 24
    queue rebuild
    account collisions --account 1
    audit list
    audit export {folder}/audit.jsonl
    audit verify {folder}/audit.jsonl
"""


@pytest.mark.parametrize("new_database_url", ["sqlite", "postgresql"], indirect=True)
def test_every_function_of_a_store_runs(new_database_url: str, tmp_path: Path) -> None:
    ran: set[tuple[str, str]] = set()

    def note(frame: FrameType, what: str, _argument: object) -> None:
        if what == "call" and frame.f_code.co_filename in STORES:
            ran.add((frame.f_code.co_filename, frame.f_code.co_name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with ExitStack() as stack:
            live(Installation(new_database_url, stack), tmp_path)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    missing = sorted(f"{Path(path).relative_to(PACKAGE)} {name}" for path, name in FUNCTIONS - ran)
    if new_database_url.startswith("postgresql"):
        # of SQLite, whose file may be put back as it was
        missing.remove("invitations/store/workers.py count_offers")
    assert not missing, "\n".join(missing)


def watch_and_search(one: Installation, reach: Reach) -> None:
    with one.db.read() as tx:
        [group] = read_board(tx, reach, one.clock()).groups
        assert read_day(tx, reach, group.plans[0].plan.id, one.clock()).promised
        [found] = search_people(tx, reach, ByExternalId("AB 000008"), now=NOW).people
        assert get_covered(tx, reach, found.id, now=NOW).last_change
        find_similar_to(tx, reach, found.id, now=NOW)


def live(one: Installation, folder: Path) -> None:
    actor = Requester("someone", "request", NOW)
    with one.db.write() as tx:
        record(
            tx,
            [AuditEntry("plan.changed", "someone", "request")],
            now=NOW - timedelta(days=8 * 366),
        )
    one.a_day()
    one.forget()
    limited = make_customer(one.db, name="Limited", requests_per_minute=5)
    assert one.api.as_(limited.token).get("/v2/plans").status_code == 200
    feed(one.db, event("waits", JOINED, 0, plan_id=one.customer.plan_ids[0], visit="waits"))
    enrolled = member_body(8, email="greylist@example.com", invite_immediately=True)
    assert (
        one.api.post(f"/v2/plans/{one.customer.plan_ids[0]}/eligibility", enrolled).status_code
        == 201
    )
    person = f"last_name={enrolled['last_name']}&dob={enrolled['dob'][:10]}"
    assert one.reader.get(f"/v2/eligibility?{person}").json()["data"]
    options = WorkerOptions(read_time=lambda _: one.clock())
    with closing(
        DeliveryWorker(one.config, one.db, MailCatcher(one.db, one.clock), options)
    ) as worker:
        assert worker.turn()
    mail = mailed(one.api, one.db, one.customer, number=7, state=InvitationState.AMBIGUOUS)
    assert one.api.as_(None).get(f"/register/{mail.tokens.registration}").status_code == 200
    account = one.customer.account_id
    for _ in range(2):  # the second process takes what the first has stored
        with closing(queues.QueueSnapshots(one.clock, 15)) as snapshots:
            assert snapshots.read(one.db, account, one.customer.plan_ids) is not None
    with one.db.write() as tx:  # an upload that ends here
        begin_file(tx, NewFile(account, one.customer.plan_ids[0]), one.desk.requester())
    delete_left_content(one.db, one.clock())
    _, held = (
        one.desk.load(interchange(transaction(MEMBER, day=day)).encode())
        for day in ("20261119", "20261118")
    )
    assert held.state == "held", "it is older"
    one.clock.advance(1)
    moved = interchange(transaction(MEMBER.replace("*02134*", "*02135*")))
    assert one.desk.load(moved.encode()).counts["updated"] == 1
    assert one.desk.approve(held).codes["changed_since"] == 1
    with one.db.read() as tx:
        seconds_to_work(tx, DeliveryContext(policy_of(one.config)), now=one.clock())
        assert (
            len(
                [
                    *queues.list_waiting(tx, one.clock()),
                    *queues.list_in_visit(tx),
                    *queues.list_on_duty(tx, one.clock()),
                ]
            )
            == 5
        )
        assert len(find_digests_of(tx, [1, 2])) == 2
        assert last_member_id(tx) > 2
        assert queue_state(tx, Reach.of(account), one.clock()).keys() == {*one.customer.plan_ids}
        assert len(list(list_history(tx, NOW))) > 3
    watch_and_search(one, Reach.of(account))
    with one.db.read() as tx:
        [caught, *_] = list_messages(tx)
        [secret] = list_secrets(tx, EVERY, limited.client_id)
    cli = CommandLine(one.db.url)
    (folder / "mapping.json").write_text(json.dumps({"columns": {"Key": "external_id"}}))
    names = {
        "client": limited.client_id,
        "folder": folder,
        "secret": secret.id,
        "ambiguous": mail.id,
    }
    names["ambiguous_member"] = mail.address
    for line in BY_OPERATORS.strip().splitlines():
        assert cli.text(*shlex.split(line.format(**names, caught=caught.id)))
    one.clock.advance(401 * 86_400)
    RetentionTurn(one.db, one.clock, retention_days(one.config), actor).run()
