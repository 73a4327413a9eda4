"""Accounts, API clients, their secrets and tokens, and how many requests a client may make."""

from frontdesk.access.store import account_is_active, caller_of, create_account, list_accounts, list_clients

__all__ = ["account_is_active", "caller_of", "create_account", "list_accounts", "list_clients"]
