"""Whose things a caller sees is said by a `Reach`: no function takes a left-out account for all
accounts, and what is out of reach is answered as what does not exist, on both databases.
"""

import ast
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from frontdesk import codes
from frontdesk.access import accounts, list_accounts, list_clients
from frontdesk.audit import AuditEntry, AuditQuery, Requester, list_entries, record
from frontdesk.db import Database, Tx
from frontdesk.eligibility import find_addresses, find_members, list_holders, people
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.files import actions
from frontdesk.files.model import FileFilter, FileKey
from frontdesk.invitations import delivery, list_invitations
from frontdesk.invitations.model import FailedSince, InvitationState
from frontdesk.invitations.resend import count_failed, resend_invitation
from frontdesk.plans import get_plan, list_plans
from frontdesk.privacy import erasure, find_holds
from frontdesk.queues.snapshot import queue_state
from frontdesk.queues.store.pools import plans_by_group
from frontdesk.queues.store.snapshots import list_outcomes
from frontdesk.reach import EVERY, Reach
from tests.conftest import SetClock
from tests.factories import NOW, Customer, make_customer, member_body
from tests.files.loading import Desk, csv_of, row
from tests.invitations.mails import enrol_members

SOURCE = Path(__file__).parents[2] / "src/frontdesk"
NOUNS = (
    *("access", "audit", "eligibility", "events", "files", "formats", "idempotency"),
    *("invitations", "mailbox", "mapping", "plans", "privacy", "queues", "usage", "users"),
)
# Where an account that may be left out selects nothing: the reason of each.
DATA = {
    "access/model.py NewClient": "the owner of a new client; an operator's has none",
    "access/model.py ApiClient": "the owner of a stored client",
    "access/model.py Caller": "the account behind a token; an operator's has none",
    "audit/store.py AuditEntry": "what an entry is about",
    "audit/store.py Requester.entry": "what an entry is about",
    "audit/store.py record_action": "what an entry is about",
    "usage/model.py RequestCosts": "whose requests they were; probes have no account",
    "users/model.py NewUser": "the home of a new user; the installation has none",
    "users/model.py User": "the home of a user; one of the installation has none",
    "users/model.py User.may": "None asks for the installation, which a user of an account never is",
    "users/model.py User.reaches": "as User.may",
    "users/directory.py change_roles": "the accounts of a support role, None for every one",
    "users/directory.py list_home": "those of one home",
    "users/directory.py get_of_home": "one of this home",
    "users/links.py get_of_home": "one into this home",
    "users/links.py list_invitations_of_home": "those into one home",
    "users/store.py list_home": "those of one home",
    "users/store.py list_invitations_of_home": "those into one home",
    "users/names.py account_names": "the home of a user",
    "users/roles.py check_roles": "the home of a user",
    "users/store.py count_users": "those of one home",
    "invitations/store/suppressions.py suppress": "whose mail caused it; an operator's has none",
}
# HTTP doors of customers that look beyond the caller's account.
BEYOND = {
    "api/me.py": "the caller's own client, found by the client_id of its token",
    "api/oauth.py": "the client of a refused pair, for the audit trail",
}
BY = Requester("cli:anna", "request", NOW)
ABSENT = 999_999


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*.py")):
            yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


def may_be_left_out(name: str, annotation: ast.expr | None) -> bool:
    """Whether this is an account, by its name, whose type has None."""
    return (
        "account" in name
        and annotation is not None
        and "int" in ast.unparse(annotation)
        and "None" in ast.unparse(annotation)
    )


Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def public_in(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, Named]]:
    """The public functions and classes of a module, and those of its public classes, by name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Named) and not node.name.startswith("_"):
            yield f"{outer}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public_in(node, f"{node.name}.")


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def optional_accounts(tree: ast.AST) -> Iterator[str]:
    """The public functions and classes with a parameter or a field that is an account or None."""
    given: list[tuple[str, ast.expr | None]]
    for name, node in public_in(tree):
        if isinstance(node, ast.ClassDef):
            fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            given = [(ast.unparse(each.target), each.annotation) for each in fields]
        else:
            given = [(each.arg, each.annotation) for each in parameters(node)]
        if any(may_be_left_out(*each) for each in given):
            yield name


def test_no_account_that_is_left_out_selects_all_accounts() -> None:
    example = "class A:\n account_id: int | None\n def f(self, of_account: int | None): ...\n"
    assert list(optional_accounts(ast.parse(example))) == ["A", "A.f"]
    found = [f"{path} {name}" for path, tree in trees(*NOUNS) for name in optional_accounts(tree)]
    assert sorted(found) == sorted(DATA)


def names_called(tree: ast.AST) -> Iterator[str]:
    """The last name of what each call calls: `Reach` for `reach.Reach(7)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2]


def test_a_reach_is_made_by_reach_itself() -> None:
    """`Reach(account_id)` would take a None that came along for everything."""
    assert list(names_called(ast.parse("Reach.of(1)\nreach.Reach(None)"))) == ["of", "Reach"]
    makers = {path for path, tree in trees(".") if "Reach" in names_called(tree)}
    assert makers == {"reach.py"}


def test_no_parameter_has_a_reach_that_may_be_left_out() -> None:
    for path, tree in trees("."):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
                assert not any("EVERY" in ast.unparse(each) for each in defaults), path
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Reach":
                assert node.value is None, path


def test_the_doors_of_customers_reach_one_account() -> None:
    beyond = {
        path
        for path, tree in trees("api", "interface")
        if any(isinstance(node, ast.Name) and node.id == "EVERY" for node in ast.walk(tree))
    }
    assert beyond == set(BEYOND)


class Things(NamedTuple):
    """Ids of what an account has."""

    plan: int
    member: int
    external_id: str
    file: int
    invitation: int
    client: str


class TwoAccounts(NamedTuple):
    """A database with two customers who have one of each; `absent` names nothing."""

    db: Database
    mine: Customer
    theirs: Customer
    own: Things
    foreign: Things
    absent: Things


def filled(db: Database, clock: SetClock, customer: Customer, number: int) -> Things:
    with db.write() as tx:
        body = member_body(number, invite_immediately=True)
        enrol_members(tx, customer, [body], now=clock())
        [member] = find_members(tx, EVERY, body["external_id"])
        person = erasure.get_person(tx, EVERY, member["id"])
        erasure.place_hold(tx, person, "Case", BY)
        record(tx, [AuditEntry("member.read", "a", "r", customer.account_id)], now=NOW)
        [invitation] = list_invitations(tx, Reach.of(customer.account_id), state=None, limit=2)
    file = Desk(db, customer, clock).hand_in(csv_of([row(number)]))
    return Things(
        customer.plan_ids[0],
        member["id"],
        body["external_id"],
        file.id,
        invitation.id,
        customer.client_id,
    )


@pytest.fixture
def two(db: Database, clock: SetClock, customer: Customer) -> TwoAccounts:
    other = make_customer(db, name="Other")
    own = filled(db, clock, customer, 1)
    foreign = filled(db, clock, other, 2)
    absent = Things(ABSENT, ABSENT, "nothing", ABSENT, ABSENT, "f" * 32)
    return TwoAccounts(db, customer, other, own, foreign, absent)


class _FoundError(Exception):
    """Ends a transaction without a change."""


def give_up() -> NoReturn:
    raise _FoundError


def secret_of(tx: Tx, of: Things) -> int:
    """The id of the client's secret; of the first one for a client that does not exist."""
    client = accounts.find_client(tx, EVERY, of.client)
    return accounts.list_secrets(tx, EVERY, of.client)[0].id if client else 1


Act = Callable[[Tx, Reach, Things], object]
S = InvitationState
# Functions that name one thing. Each answers NotFound for what does not exist.
NAMING: dict[str, Act] = {
    "get_client": lambda tx, reach, of: accounts.get_client(tx, reach, of.client),
    "rotate_secret": lambda tx, reach, of: accounts.rotate_secret(tx, reach, of.client, now=NOW),
    "list_secrets": lambda tx, reach, of: accounts.list_secrets(tx, reach, of.client),
    "revoke_secret": lambda tx, reach, of: accounts.revoke_secret(
        tx, reach, of.client, secret_of(tx, of), now=NOW
    ),
    "revoke_tokens": lambda tx, reach, of: accounts.revoke_tokens(tx, reach, of.client, now=NOW),
    "revoke_client": lambda tx, reach, of: accounts.revoke_client(tx, reach, of.client, now=NOW),
    "get_plan": lambda tx, reach, of: get_plan(tx, reach, of.plan),
    "get_file": lambda tx, reach, of: actions.get_file(tx, FileKey(of.file, reach)),
    "approve_file": lambda tx, reach, of: actions.approve_file(tx, FileKey(of.file, reach), BY),
    "accept_mapping": lambda tx, reach, of: actions.accept_mapping(
        tx, FileKey(of.file, reach), BY, mapping={}
    ),
    "cancel_file": lambda tx, reach, of: actions.cancel_file(tx, FileKey(of.file, reach), BY),
    "undo_file": lambda tx, reach, of: actions.undo_file(tx, FileKey(of.file, reach), BY),
    "find_files": lambda tx, reach, of: actions.find_files(tx, FileFilter(reach, 9, of.plan)),
    "find_member": lambda tx, reach, of: people.find_member(tx, reach, of.external_id),
    "find_member by id": lambda tx, reach, of: people.find_member(tx, reach, str(of.member)),
    "get_members_named": lambda tx, reach, of: people.get_members_named(tx, reach, of.external_id),
    "find_eligibility": lambda tx, reach, of: people.find_eligibility(
        tx, reach, of.external_id, on="2026-11-20"
    ),
    "lock_pair": lambda tx, reach, of: people.lock_pair(tx, reach, of.external_id, of.external_id),
    "find_persons": lambda tx, reach, of: erasure.find_persons(tx, reach, of.external_id),
    "get_person": lambda tx, reach, of: erasure.get_person(tx, reach, of.member),
    "find_persons_of": lambda tx, reach, of: erasure.find_persons_of(tx, reach, of.member),
    "get_invitation": lambda tx, reach, of: delivery.get_invitation(tx, reach, of.invitation),
    "cancel_invitation": lambda tx, reach, of: delivery.cancel_invitation(
        tx, reach, of.invitation, BY
    ),
    "settle_invitation": lambda tx, reach, of: delivery.settle_invitation(
        tx, reach, of.invitation, S.SENT, BY
    ),
    "resend_invitation": lambda tx, reach, of: resend_invitation(
        tx, reach, of.invitation, BY, find_addresses=find_addresses
    ),
}


def said(two: TwoAccounts, act: Act, reach: Reach, of: Things) -> tuple[Any, ...] | None:
    """All that a door could tell of the answer; None if the thing was found. Nothing is kept."""
    try:
        with two.db.write() as tx:
            act(tx, reach, of)
            give_up()
    except NotFound as error:
        return (str(error), error.detail, error.code, error.remedy, error.ids, error.faults)
    except (FrontdeskError, _FoundError):
        return None  # also where its state forbids this


def test_what_is_out_of_reach_is_answered_as_what_does_not_exist(two: TwoAccounts) -> None:
    mine = Reach.of(two.mine.account_id)
    for name, act in NAMING.items():
        unknown = said(two, act, mine, two.absent)
        assert unknown is not None, name
        assert said(two, act, mine, two.foreign) == unknown, name
        assert said(two, act, EVERY, two.absent) == unknown, name
        for reach in (EVERY, Reach.of(two.theirs.account_id)):
            assert said(two, act, reach, two.foreign) is None, name


def of_account(rows: Any) -> set[int]:
    return {each["account_id"] if isinstance(each, dict) else each.account_id for each in rows}


# Functions that list things: the accounts of what they give.
LISTING: dict[str, Callable[[Tx, Reach], set[int]]] = {
    "list_accounts": lambda tx, reach: {each.id for each in list_accounts(tx, reach)},
    "list_clients": lambda tx, reach: of_account(list_clients(tx, reach)),
    "list_entries": lambda tx, reach: of_account(
        list_entries(tx, reach, AuditQuery(action="member.read"))
    ),
    "find_holds": lambda tx, reach: of_account(find_holds(tx, reach)),
    "list_invitations": lambda tx, reach: of_account(
        list_invitations(tx, reach, state=None, limit=9)
    ),
    "find_files": lambda tx, reach: of_account(actions.find_files(tx, FileFilter(reach, 9))),
}


def test_a_list_has_what_is_within_reach(two: TwoAccounts) -> None:
    mine = two.mine.account_id
    theirs = two.theirs.account_id
    with two.db.read() as tx:
        for name, listed in LISTING.items():
            assert listed(tx, Reach.of(mine)) == {mine}, name
            assert listed(tx, EVERY) == {mine, theirs}, name
            assert listed(tx, Reach.of(ABSENT)) == set(), name
        of_plans: list[Callable[[Reach], list[int]]] = [
            lambda reach: [each.id for each in list_plans(tx, reach)],
            lambda reach: sorted(chain(*plans_by_group(tx, reach).values())),
            lambda reach: sorted(queue_state(tx, reach, NOW)),
        ]
        for plans in of_plans:
            assert plans(Reach.of(mine)) == sorted(two.mine.plan_ids)
            assert plans(EVERY) == sorted([*two.mine.plan_ids, *two.theirs.plan_ids])
        for reach in (Reach.of(mine), EVERY):
            assert list_holders(tx, reach, limit=9) == []
            assert list_outcomes(tx, reach, NOW) == []


def test_what_is_done_to_many_is_done_within_reach(two: TwoAccounts) -> None:
    with two.db.write() as tx:
        tx.exec_driver_sql("UPDATE invitations SET state = 'failed', settled_at = created_at")
        for reach, count in ((EVERY, 2), (Reach.of(two.mine.account_id), 1)):
            assert count_failed(tx, FailedSince(reach, NOW, NOW)) == count
        pairs = [(two.own.external_id, "N 1"), (two.foreign.external_id, "N 2")]
        results = people.rename(
            tx, pairs, Reach.of(two.mine.account_id), BY, lambda _, asked: [_refused()] * len(asked)
        )
    assert results == ["not_unique", people.NO_SUCH_MEMBER]


def _refused() -> FrontdeskError:
    return FrontdeskError("taken", code=codes.faults.NOT_UNIQUE, field="external_id")


def test_a_client_of_operators_is_within_reach_of_every_only(two: TwoAccounts) -> None:
    assert EVERY.covers(None)
    assert not Reach.of(two.mine.account_id).covers(None)
