"""Accounts, API clients, their secrets and tokens, and how many requests a client may make."""

from frontdesk.access.accounts import (
    create_client,
    get_account,
    get_client,
    revoke_client,
    rotate_secret,
)
from frontdesk.access.authentication import authenticate_client, refuse_if_limited
from frontdesk.access.store import create_account, find_caller, list_accounts, list_clients
from frontdesk.access.tokens import LIFETIME_SECONDS, issue_token, revoke_token

__all__ = [
    "LIFETIME_SECONDS",
    "authenticate_client",
    "create_account",
    "create_client",
    "find_caller",
    "get_account",
    "get_client",
    "issue_token",
    "list_accounts",
    "list_clients",
    "refuse_if_limited",
    "revoke_client",
    "revoke_token",
    "rotate_secret",
]
