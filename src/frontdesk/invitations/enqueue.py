"""Putting invitations in line, in the transaction that creates the member; who is invited is `rules`, delivery is later."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import Found, one_round_trip
from frontdesk.invitations import store
from frontdesk.invitations.rules import Delivery
from frontdesk.invitations.states import InvitationState
from frontdesk.text import fold_email

ENROLMENT = "enrolment"  # the kind of invitation that a new member gets, once


@dataclass(frozen=True, slots=True)
class NewInvitation:
    account_id: int
    plan_id: int
    member_id: int
    delivery: Delivery
    address: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the rules need of the database, for a whole chunk."""

    batches_enabled: dict[int, bool]
    suppressed: set[str]


class CircumstancesFound:
    """Circumstances that were asked for in a round trip; `read()` once it has ended."""

    def __init__(self, settings: Found, suppressed: Found) -> None:
        self._settings = settings
        self._suppressed = suppressed

    def read(self) -> Circumstances:
        return Circumstances(
            batches_enabled={row["account_id"]: bool(row["enabled"]) for row in self._settings.rows},
            suppressed={row["address_folded"] for row in self._suppressed.rows},
        )


def find_circumstances(
    tx: Tx, *, account_ids: Collection[int], addresses: Collection[str]
) -> CircumstancesFound:
    """The accounts' settings and which of the (folded) addresses are suppressed. Two set reads."""
    return CircumstancesFound(
        store.find_batches_enabled(tx, account_ids), store.find_suppressed(tx, addresses)
    )


def enqueue(tx: Tx, invitations: Sequence[NewInvitation], *, now: datetime) -> None:
    """Insert the invitations as `pending`; a member can have one of each kind, so a second one is refused."""
    if not invitations:
        return
    at = stored_time(now)
    store.insert_invitations(
        tx,
        [
            {
                "account_id": invitation.account_id,
                "plan_id": invitation.plan_id,
                "member_id": invitation.member_id,
                "kind": ENROLMENT,
                "delivery": invitation.delivery.value,
                "state": InvitationState.PENDING.value,
                "address": invitation.address,
                "address_folded": fold_email(invitation.address),
                "created_at": at,
                "updated_at": at,
                "due_at": at,
            }
            for invitation in invitations
        ],
    )


def follow_members(tx: Tx, plan_ids: Mapping[int, int]) -> None:
    """Let the invitations of members that were moved be to the plan that each has now; `plan_ids` by member id.

    Called in the transaction that moves them. In whatever state: one that is in line waits for the new plan and names it,
    a link that was sent leads to it.
    """
    if not plan_ids:
        return
    with one_round_trip(tx):
        found = store.find_of_members(tx, plan_ids)
    rows = [{"id": row["id"], "plan_id": plan_ids[row["member_id"]]} for row in found.rows]
    with one_round_trip(tx):
        store.update_plans(tx, sorted(rows, key=lambda row: int(row["id"])))
