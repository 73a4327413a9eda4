"""The content of the demo account: invented groups, plans, doctors, waiting patients and recent
visits; made once.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from frontdesk import audit
from frontdesk.access import create_account, list_accounts, list_clients
from frontdesk.access.accounts import create_client, rotate_secret
from frontdesk.access.model import Account, ApiClient, NewClient, Scope
from frontdesk.audit import AuditQuery, Requester
from frontdesk.db import Tx
from frontdesk.files.actions import DEFAULT_NAME, save_mapping
from frontdesk.files.model import MappingName
from frontdesk.plans import list_plans, list_provider_groups
from frontdesk.plans.changes import create_plan, create_provider_group
from frontdesk.plans.model import NewPlan, Plan, ProviderGroup
from frontdesk.queues.ingest import ingest, set_duty, set_waiting
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.reach import EVERY, Reach
from frontdesk.sandbox import ACCOUNT, SAMPLE_MAPPING

CLIENT = "Demo client"
PRIMARY_CARE = "demo-primary-care"

# external_id, name, description, whether it accepts patients, and whether primary care's doctors
# serve it.
_PLANS = (
    ("demo-bronze", "Demo Bronze", "Primary care by video, 8 to 18 h", True, True),
    ("demo-silver", "Demo Silver", None, True, True),
    ("demo-gold", "Demo Gold", "Urgent care by video, day and night", True, False),
    ("demo-retired", "Demo Retired", "No longer offered", False, False),
)
_DOCTORS = {True: ("demo-dr-1", "demo-dr-2"), False: ("demo-dr-3",)}
_WAITING_MINUTES = {"demo-bronze": (14, 9, 2), "demo-silver": (6,), "demo-gold": (11, 4)}
_VISIT_MINUTES = (9, 12, 14, 8, 11)  # how long the recent visits took; one began every half hour


# Actions in the trail, around the making of a history (demo_history).
BEGUN = "demo.history_begun"
MADE = "demo.history_made"


class HistoryState(StrEnum):
    """Whether the demo's account has a history. `incomplete`: the run that made it was ended."""

    NONE = "none"
    MADE = "made"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class Demo:
    """`is_new`: the account was made now."""

    account: Account
    plans: list[Plan]
    client: ApiClient
    secret: str
    is_new: bool


def find_demo_account(tx: Tx) -> Account | None:
    """The demo's account, if it was made."""
    return next((each for each in list_accounts(tx, EVERY) if each.name == ACCOUNT), None)


def set_up_demo(tx: Tx, requester: Requester, *, with_queues: bool = True) -> Demo:
    """The demo account, made if it is missing, and a new secret of its client; the previous secret
    still works. Without `with_queues` a new account has no doctors, patients and visits.
    """
    account = find_demo_account(tx) or create_account(tx, name=ACCOUNT, now=requester.now)
    is_new = not list_plans(tx, Reach.of(account.id))
    if is_new:
        _fill(tx, requester, account)
        if with_queues:
            _fill_queues(tx, requester, account)
        audit.record_action(
            tx, requester, "demo.created", account_id=account.id, subject_id=account.id
        )
    client, secret = _fresh_secret(tx, requester, account)
    audit.record_action(
        tx,
        requester,
        "client.secret_made",
        account_id=account.id,
        subject_id=client.id,
        client_id=client.client_id,
    )
    return Demo(account, list_plans(tx, Reach.of(account.id)), client, secret, is_new)


def history_state(tx: Tx, account_id: int) -> HistoryState:
    """What the trail says about the history of this account."""
    reach = Reach.of(account_id)
    if audit.list_entries(tx, reach, AuditQuery(action=MADE), limit=1):
        return HistoryState.MADE
    begun = audit.list_entries(tx, reach, AuditQuery(action=BEGUN), limit=1)
    return HistoryState.INCOMPLETE if begun else HistoryState.NONE


def _fresh_secret(tx: Tx, requester: Requester, account: Account) -> tuple[ApiClient, str]:
    reach = Reach.of(account.id)
    live = (client for client in list_clients(tx, reach) if client.revoked_at is None)
    client = next((client for client in live if client.name == CLIENT), None)
    if client is not None:
        return client, rotate_secret(tx, reach, client.client_id, now=requester.now)
    scopes = set(Scope) - {Scope.OPERATOR}
    return create_client(tx, NewClient(account.id, CLIENT, scopes), now=requester.now)


def _fill(tx: Tx, requester: Requester, account: Account) -> None:
    primary_care = _primary_care(tx, requester)
    urgent_care = create_provider_group(
        tx, name="Demo Urgent Care", external_id=None, now=requester.now
    )
    groups = {True: primary_care, False: urgent_care}
    for external_id, name, description, accepting, is_primary in _PLANS:
        group_id = groups[is_primary].id
        new = NewPlan(
            account.id, group_id, external_id, name, description, accepting_patients=accepting
        )
        create_plan(tx, new, now=requester.now)
    key = MappingName(account.id, DEFAULT_NAME)
    save_mapping(tx, key, SAMPLE_MAPPING, requester, default=True)


def _fill_queues(tx: Tx, requester: Requester, account: Account) -> None:
    plans = list_plans(tx, Reach.of(account.id))
    open_doors(tx, plans, now=requester.now - timedelta(hours=3))
    for plan in plans:
        _visits_and_patients(tx, requester, plan, doctors_of(plan))


def open_doors(tx: Tx, plans: Iterable[Plan], *, now: datetime) -> None:
    """The doctors of the plans come on duty."""
    duties = {(plan.provider_group.id, doctor) for plan in plans for doctor in doctors_of(plan)}
    for group_id, doctor in sorted(duties):
        set_duty(tx, group_id, doctor, on_duty=True, now=now)


def doctors_of(plan: Plan) -> tuple[str, ...]:
    """The doctors of the plan's provider group."""
    return _DOCTORS[plan.provider_group.external_id == PRIMARY_CARE]


def _primary_care(tx: Tx, requester: Requester) -> ProviderGroup:
    """Finds the group that an earlier demo has made: its external_id is unique over all accounts."""
    known = (group for group in list_provider_groups(tx) if group.external_id == PRIMARY_CARE)
    group = next(known, None)
    return group or create_provider_group(
        tx, name="Demo Primary Care", external_id=PRIMARY_CARE, now=requester.now
    )


def _visits_and_patients(
    tx: Tx, requester: Requester, plan: Plan, doctors: tuple[str, ...]
) -> None:
    waiting = _WAITING_MINUTES.get(plan.external_id, ())
    for number, minutes in enumerate(waiting, 1):
        joined_at = requester.now - timedelta(minutes=minutes)
        set_waiting(
            tx, plan.id, f"{plan.external_id}-patient-{number}", waiting=True, now=joined_at
        )
    for number, minutes in enumerate(_VISIT_MINUTES if waiting else (), 1):
        began = requester.now - timedelta(minutes=30 * number)
        doctor = doctors[number % len(doctors)]
        _record_visit(tx, requester, plan, doctor, began, minutes)
    if waiting and plan.external_id != "demo-silver":
        # The first doctor of each group is with a patient now.
        _record_visit(tx, requester, plan, doctors[0], requester.now - timedelta(minutes=4))


def _record_visit(
    tx: Tx,
    requester: Requester,
    plan: Plan,
    doctor: str,
    started_at: datetime,
    minutes: float | None = None,
) -> None:
    """A visit of so many minutes; without `minutes` it is in progress."""
    start, end, visit = (f"demo-{secrets.token_hex(12)}" for _ in range(3))
    group = plan.provider_group.id
    events = [QueueEvent(start, EventType.VISIT_STARTED, started_at, group, plan.id, doctor, visit)]
    if minutes is not None:
        ended_at = started_at + timedelta(minutes=minutes)
        events.append(
            QueueEvent(end, EventType.VISIT_ENDED, ended_at, group, plan.id, doctor, visit)
        )
    ingest(tx, events, now=requester.now)
