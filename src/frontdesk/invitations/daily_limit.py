"""Five mails a day for one mailbox, over all accounts. `robin+1@…` and `robin+2@…` arrive in one
mailbox.

A mailbox is the folded address without what follows a `+` in its local part. Dots are kept: only
some providers ignore them. Each invitation to it has a moment that counts: when it was last
claimed, or, for one that has to wait, the place that it got. A place is a day after the fifth
newest moment, so those of an account that wait get places one behind the other. A claim counts
whether or not its mail left. The same invitation tried again counts once.

Claims of all accounts count, but of the places only those of the same account: otherwise one
account's hundred invitations would keep another's first from the mailbox for weeks. At its place an
invitation is looked at again, against the claims of all.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from frontdesk.db import Tx
from frontdesk.db.sets import lock_names
from frontdesk.invitations.model import ClaimedInvitation
from frontdesk.invitations.store import limits

DAILY_LIMIT = 5
DAY = timedelta(days=1)
DIGEST_BYTES = 16

# by mailbox: when an invitation counts, and its id
Moments = Mapping[str, Sequence[tuple[datetime, int]]]


def mailbox_of(address_folded: str) -> str:
    """The mailbox that mail to the folded address arrives in.

    >>> mailbox_of("robin+gold@example.com")
    'robin@example.com'
    >>> mailbox_of("+robin@example.com")
    '+robin@example.com'
    """
    local, at, domain = address_folded.rpartition("@")
    name = local.partition("+")[0]
    return f"{name}{at}{domain}" if name and not local.startswith('"') else address_folded


def postpone(
    tx: Tx, claimed: Sequence[ClaimedInvitation], *, now: datetime, unlimited: Collection[str]
) -> dict[int, datetime]:
    """Take the mailboxes' places for the claimed invitations; returns by their ids when those may
    be sent that can't be now.

    `unlimited`: local parts of mailboxes that are not counted. Other claims of the same mailboxes
    wait for this transaction.
    """
    limited = [each for each in claimed if each.mailbox_digest and not _is_among(each, unlimited)]
    if not limited:
        return {}
    lock_names(tx, {each.mailbox_digest or "" for each in limited})
    claims, waiting = _find_moments(tx, limited, now)
    places = {}
    for each in limited:
        digest = each.mailbox_digest or ""
        own = (each.account_id, digest)
        # One that has had its place, or was tried before, waits for no place that others got after
        # it.
        counted = claims[digest] + (waiting[own] if each.mailbox_at is None else [])
        place = next_place(counted, now)
        places[each.id] = place
        (claims[digest] if place <= now else waiting[own]).append(place)
    limits.set_mailbox_times(tx, places)
    return {id_: place for id_, place in places.items() if place > now}


def next_place(moments: Collection[datetime], now: datetime) -> datetime:
    """Now, or when the fifth newest of the moments is a day ago.

    >>> noon = datetime(2026, 11, 20, 12)
    >>> next_place([noon], noon) == noon
    True
    >>> next_place([noon] * 5, noon)
    datetime.datetime(2026, 11, 21, 12, 0)
    """
    newest = sorted(moments, reverse=True)[:DAILY_LIMIT]
    return now if len(newest) < DAILY_LIMIT else max(now, newest[-1] + DAY)


def _find_moments(
    tx: Tx, limited: Sequence[ClaimedInvitation], now: datetime
) -> tuple[dict[str, list[datetime]], dict[tuple[int, str], list[datetime]]]:
    """The newest claims by mailbox, and the newest places by account and mailbox; without those of
    these invitations.
    """
    digests = {each.mailbox_digest or "" for each in limited}
    these = {each.id for each in limited}
    count = DAILY_LIMIT + len(limited)  # these may be among the newest
    find = partial(limits.find_mailbox_times, tx, digests, window=(now - DAY, now), count=count)
    found = find()
    claims = {digest: _of_others(found, digest, these) for digest in digests}
    waiting: dict[tuple[int, str], list[datetime]] = {}
    for account_id in {each.account_id for each in limited}:
        places = find(waiting_of=account_id)
        waiting |= {(account_id, digest): _of_others(places, digest, these) for digest in digests}
    return claims, waiting


def _of_others(moments: Moments, digest: str, these: Collection[int]) -> list[datetime]:
    return [at for at, id_ in moments.get(digest, ()) if id_ not in these]


def _is_among(invitation: ClaimedInvitation, local_parts: Collection[str]) -> bool:
    return mailbox_of(invitation.address_folded or "").rpartition("@")[0] in local_parts
