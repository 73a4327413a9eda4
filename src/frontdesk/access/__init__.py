"""Accounts, API clients, their secrets and tokens, and how many requests a client may make."""

from frontdesk.access.store import caller_of, create_account, list_accounts, list_clients

__all__ = ["caller_of", "create_account", "list_accounts", "list_clients"]
