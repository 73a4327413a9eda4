"""Putting invitations in line, in the transaction that creates the member; who is invited is `rules`, delivery is later."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations import store
from frontdesk.invitations.rules import Delivery

ENROLMENT = "enrolment"  # the kind of invitation that a new member gets, once


class State(StrEnum):
    """Where an invitation is (docs/states.md)."""

    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    account_id: int
    plan_id: int
    member_id: int
    delivery: Delivery
    address: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the rules need of the database, read once for a whole chunk."""

    batches_enabled: dict[int, bool]
    suppressed: set[str]


def read_circumstances(tx: Tx, *, account_ids: Iterable[int], addresses: Iterable[str]) -> Circumstances:
    """Settings of the accounts and suppression of the (folded) addresses; asks nothing when nobody may be invited."""
    accounts, folded = set(account_ids), set(addresses)
    return Circumstances(
        batches_enabled=store.batches_enabled(tx, accounts) if accounts else {},
        suppressed=store.suppressed_among(tx, folded) if folded else set(),
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
                "state": State.PENDING.value,
                "address": invitation.address,
                "created_at": at,
                "updated_at": at,
            }
            for invitation in invitations
        ],
    )
