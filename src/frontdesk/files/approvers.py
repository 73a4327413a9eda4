"""Who may approve a held file where the account wants a second person (docs/decisions/0092)."""

from datetime import datetime, timedelta

from frontdesk import audit
from frontdesk.access import client_number
from frontdesk.access.accounts import LIVE_SECRETS
from frontdesk.audit.actors import user_id_of
from frontdesk.db import Tx
from frontdesk.files import model, store

HELD_RIGHT_BEFORE = timedelta(days=1)  # the file came


def find_obstacle(
    tx: Tx, file: model.EligibilityFile, actor: str, *, approves_since: datetime | None = None
) -> str:
    """Why this client, operator or user can't approve the file; "" if nothing is in the way.

    `approves_since`: since when the user has held the right; it is asked of users only, because a
    client has its scope from an operator.
    """
    if not store.get_file_settings(tx, file.account_id).second_approver:
        return ""
    if actor == file.client:
        return "The client, user or operator that handed the file in can't approve it."
    shared = _users_behind(tx, actor, file.created_at) & _users_behind(
        tx, file.client, file.created_at
    )
    if actor in shared:
        return (
            "The file came from a client whose secret you have made or rolled, so it counts as yours. "
            "Somebody else has to approve it."
        )
    if shared:
        return (
            "The same user handed the file in, or made the secret of the client that did, and has made "
            "your secret. Somebody else has to approve it."
        )
    is_new = approves_since is None or approves_since > file.created_at - HELD_RIGHT_BEFORE
    if user_id_of(actor) is not None and is_new:
        return (
            "You may approve files that came a day or more after you were given the right to. Somebody "
            "who has held it longer has to approve this one."
        )
    return ""


def _users_behind(tx: Tx, actor: str, came_at: datetime) -> set[str]:
    """The user, or the users who know the client's secret: who made one that worked when the file
    came, or one since.
    """
    if user_id_of(actor) is not None:
        return {actor}
    client = client_number(tx, actor)
    if client is None:
        return set()
    known = set()
    worked = 0
    for made_at, maker in audit.entries_of_secrets(tx, client):
        if worked == LIVE_SECRETS:
            break
        worked += made_at <= came_at
        if user_id_of(maker) is not None:
            known.add(maker)
    return known
