"""The SQL of resends: invitations that failed, addresses in line or mailed lately, another address."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, not_, select, tuple_, update

from frontdesk.db import Tx
from frontdesk.db.sets import keyed_hasher
from frontdesk.invitations import model
from frontdesk.invitations.daily_limit import DIGEST_BYTES, mailbox_of
from frontdesk.invitations.tables import OFFERED, invitation_links, invitations
from frontdesk.text import fold_email, keyed_hash

_i = invitations.c
# The relay has definitely not taken these, whatever it was offered.
_NEVER_TAKEN = and_(
    _i.state == model.InvitationState.FAILED, _i.reason.in_(model.DEFINITE_REFUSALS), _i.losses == 0
)


def count_failed(tx: Tx, asked: model.FailedSince) -> int:
    return int(tx.execute(select(func.count()).where(*_failed(asked))).scalar_one())


def lock_failed(
    tx: Tx, asked: model.FailedSince, *, after: model.FailedPlace, count: int
) -> list[model.Invitation]:
    """The next failed invitations, locked."""
    beyond = tuple_(_i.account_id, _i.id) > tuple_(*after)
    query = select(invitations).where(*_failed(asked), beyond).order_by(_i.account_id, _i.id)
    rows = tx.execute(query.limit(count).with_for_update())
    return [model.Invitation._make(row) for row in rows]


def _failed(asked: model.FailedSince) -> list[ColumnElement[bool]]:
    conditions = [
        _i.state == model.InvitationState.FAILED,
        _i.settled_at >= asked.since,
        _i.settled_at <= asked.until,
    ]
    if asked.reach.account_id is not None:
        conditions.append(_i.account_id == asked.reach.account_id)
    if asked.relay_code is not None:
        conditions.append(_i.relay_code == asked.relay_code)
    return conditions


def find_queued(tx: Tx, addresses: Collection[str]) -> set[str]:
    """Those of the folded addresses with an invitation that is pending, claimed or offered. Reads
    all of these, by the index of states: an index of their addresses would cost each new member.
    """
    return _among(tx, addresses, _i.state.in_(model.IN_LINE))


def find_offered(tx: Tx, addresses: Collection[str], *, since: datetime) -> set[str]:
    """Those of the folded addresses that a message was offered to after `since`, for any account,
    unless the relay has refused it.
    """
    return _among(tx, addresses, and_(OFFERED, _i.offered_at > since, not_(_NEVER_TAKEN)))


def _among(tx: Tx, addresses: Collection[str], condition: ColumnElement[bool]) -> set[str]:
    query = select(_i.address_folded).where(condition, _i.address_folded.in_(sorted(addresses)))
    return {str(address) for address in tx.execute(query).scalars()}


def readdress(tx: Tx, addresses: Mapping[int, str]) -> None:
    """Give invitations, by id, another address. Links of earlier mails end: they were sent to
    somebody else, and a report about such a mail is not about the new address.
    """
    if not addresses:
        return
    hasher = keyed_hasher(tx, size=DIGEST_BYTES, person=b"mailbox")
    rows: list[dict[str, object]] = []
    for id_, address in addresses.items():
        folded = fold_email(address)
        digest = keyed_hash(mailbox_of(folded), hasher)
        rows.append({"key": id_, "to": address, "folded": folded, "digest": digest})
    changed = update(invitations).where(_i.id == bindparam("key"))
    values: dict[str, object] = {
        "address": bindparam("to"),
        "address_folded": bindparam("folded"),
        "mailbox_digest": bindparam("digest"),
    }
    tx.execute(changed.values(**values, mailbox_at=None, offered_at=None), rows)
    tx.execute(
        delete(invitation_links).where(invitation_links.c.invitation_id.in_(sorted(addresses)))
    )
