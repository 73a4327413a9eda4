"""Plans and provider groups.

The wire calls `accepting_patients` `active`. Whether doctors are on duty is part of the queue, not
of the plan.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from frontdesk.errors import Fault

DUTY_HOURS = 12  # where nothing else is said
MOST_DUTY_HOURS = 72


class ProviderGroup(NamedTuple):
    """The doctors that serve a plan. A duty ends by itself after `duty_hours` without an event of
    its doctor.
    """

    id: int
    name: str
    external_id: str | None
    created_at: datetime
    duty_hours: int = DUTY_HOURS


@dataclass(frozen=True, slots=True)
class Plan:
    """`version` counts the changes, for optimistic concurrency."""

    id: int
    account_id: int
    external_id: str
    name: str
    description: str | None
    accepting_patients: bool
    version: int
    created_at: datetime
    provider_group: ProviderGroup


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A plan to be created; `external_id` is unique among the account's plans."""

    account_id: int
    provider_group_id: int
    external_id: str
    name: str
    description: str | None = None
    accepting_patients: bool = True


class PlanPatch(NamedTuple):
    """`echoed` holds the read-only fields that were sent; they may be sent with the values that the
    plan has.
    """

    changes: dict[str, str | None]
    echoed: dict[str, object]
    faults: tuple[Fault, ...]
    ignored: tuple[str, ...]
