"""Accounts, API clients, their secrets and tokens, and how much a client may ask."""

from frontdesk.access.accounts import Account, create_account, get_account, list_accounts
from frontdesk.access.authentication import authenticate_client, refuse_if_limited
from frontdesk.access.clients import (
    ApiClient,
    create_client,
    get_client,
    list_clients,
    revoke_client,
    rotate_secret,
)
from frontdesk.access.scopes import Scope, parse_scopes, scope_text
from frontdesk.access.tokens import LIFETIME_SECONDS, Caller, issue_token, revoke_token

__all__ = [
    "LIFETIME_SECONDS",
    "Account",
    "ApiClient",
    "Caller",
    "Scope",
    "authenticate_client",
    "create_account",
    "create_client",
    "get_account",
    "get_client",
    "issue_token",
    "list_accounts",
    "list_clients",
    "parse_scopes",
    "refuse_if_limited",
    "revoke_client",
    "revoke_token",
    "rotate_secret",
    "scope_text",
]
