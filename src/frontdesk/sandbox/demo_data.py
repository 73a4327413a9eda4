"""The content of the demo account: invented groups, plans, doctors, waiting patients and recent visits; made once."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.access import create_account, list_accounts, list_clients
from frontdesk.access.accounts import create_client, rotate_secret
from frontdesk.access.model import Account, ApiClient, NewClient, Scope
from frontdesk.cli.command_group import CommandContext
from frontdesk.files.actions import DEFAULT_NAME, save_mapping
from frontdesk.files.model import MappingName
from frontdesk.plans import list_plans, list_provider_groups
from frontdesk.plans.changes import create_plan, create_provider_group
from frontdesk.plans.model import NewPlan, Plan, ProviderGroup
from frontdesk.queues.ingest import ingest, set_duty, set_waiting
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.sandbox import ACCOUNT
from frontdesk.sandbox.sample_files import SAMPLE_MAPPING

CLIENT = "Demo client"
PRIMARY_CARE = "demo-primary-care"

# external_id, name, description, whether it accepts patients, and whether primary care's doctors serve it.
_PLANS = (
    ("demo-bronze", "Demo Bronze", "Primary care by video, 8 to 18 h", True, True),
    ("demo-silver", "Demo Silver", None, True, True),
    ("demo-gold", "Demo Gold", "Urgent care by video, day and night", True, False),
    ("demo-retired", "Demo Retired", "No longer offered", False, False),
)
_DOCTORS = {True: ("demo-dr-1", "demo-dr-2"), False: ("demo-dr-3",)}
_WAITING_MINUTES = {"demo-bronze": (14, 9, 2), "demo-silver": (6,), "demo-gold": (11, 4)}
_VISIT_MINUTES = (9, 12, 14, 8, 11)  # how long the recent visits took; one began every half hour


@dataclass(frozen=True, slots=True)
class Demo:
    """`is_new`: the account was made now."""

    account: Account
    plans: list[Plan]
    client: ApiClient
    secret: str
    is_new: bool


def set_up_demo(context: CommandContext) -> Demo:
    """The demo account, made if it is missing, and a new secret of its client; the previous secret still works."""
    account = next((account for account in list_accounts(context.tx) if account.name == ACCOUNT), None)
    account = account or create_account(context.tx, name=ACCOUNT, now=context.now)
    is_new = not list_plans(context.tx, account.id)
    if is_new:
        _fill(context, account)
        context.record("demo.created", account_id=account.id, subject_id=account.id)
    client, secret = _fresh_secret(context, account)
    context.record(
        "client.secret_made", account_id=account.id, subject_id=client.id, client_id=client.client_id
    )
    return Demo(account, list_plans(context.tx, account.id), client, secret, is_new)


def _fresh_secret(context: CommandContext, account: Account) -> tuple[ApiClient, str]:
    live = (client for client in list_clients(context.tx, account.id) if client.revoked_at is None)
    client = next((client for client in live if client.name == CLIENT), None)
    if client is not None:
        return client, rotate_secret(context.tx, client.client_id, now=context.now)
    return create_client(
        context.tx, NewClient(account.id, CLIENT, {Scope.CUSTOMER, Scope.SANDBOX_RESET}), now=context.now
    )


def _fill(context: CommandContext, account: Account) -> None:
    primary_care = _primary_care(context)
    urgent_care = create_provider_group(
        context.tx, name="Demo Urgent Care", external_id=None, now=context.now
    )
    groups = {True: primary_care, False: urgent_care}
    for is_primary, doctors in _DOCTORS.items():
        for doctor in doctors:
            set_duty(
                context.tx, groups[is_primary].id, doctor, on_duty=True, now=context.now - timedelta(hours=3)
            )
    for external_id, name, description, accepting, is_primary in _PLANS:
        group_id = groups[is_primary].id
        new = NewPlan(account.id, group_id, external_id, name, description, accepting_patients=accepting)
        plan = create_plan(context.tx, new, now=context.now)
        _visits_and_patients(context, plan, _DOCTORS[is_primary])
    key = MappingName(account.id, DEFAULT_NAME)
    save_mapping(context.tx, key, SAMPLE_MAPPING, context.requester, default=True)


def _primary_care(context: CommandContext) -> ProviderGroup:
    """Finds the group that an earlier demo has made: its external_id is unique over all accounts."""
    known = (group for group in list_provider_groups(context.tx) if group.external_id == PRIMARY_CARE)
    group = next(known, None)
    return group or create_provider_group(
        context.tx, name="Demo Primary Care", external_id=PRIMARY_CARE, now=context.now
    )


def _visits_and_patients(context: CommandContext, plan: Plan, doctors: tuple[str, ...]) -> None:
    waiting = _WAITING_MINUTES.get(plan.external_id, ())
    for number, minutes in enumerate(waiting, 1):
        joined_at = context.now - timedelta(minutes=minutes)
        set_waiting(context.tx, plan.id, f"{plan.external_id}-patient-{number}", waiting=True, now=joined_at)
    for number, minutes in enumerate(_VISIT_MINUTES if waiting else (), 1):
        began = context.now - timedelta(minutes=30 * number)
        doctor = doctors[number % len(doctors)]
        _record_visit(context, plan, doctor, began, minutes)
    if waiting and plan.external_id != "demo-silver":
        # The first doctor of each group is with a patient now.
        _record_visit(context, plan, doctors[0], context.now - timedelta(minutes=4))


def _record_visit(
    context: CommandContext, plan: Plan, doctor: str, started_at: datetime, minutes: float | None = None
) -> None:
    """A visit of so many minutes; without `minutes` it is in progress."""
    start, end, visit = (f"demo-{secrets.token_hex(12)}" for _ in range(3))
    group = plan.provider_group.id
    events = [QueueEvent(start, EventType.VISIT_STARTED, started_at, group, plan.id, doctor, visit)]
    if minutes is not None:
        ended_at = started_at + timedelta(minutes=minutes)
        events.append(QueueEvent(end, EventType.VISIT_ENDED, ended_at, group, plan.id, doctor, visit))
    ingest(context.tx, events, now=context.now)
