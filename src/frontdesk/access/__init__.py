"""Accounts, API clients, their secrets and tokens, and how many requests a client may make."""

from frontdesk.access.store import create_account, find_caller, list_accounts, list_clients

__all__ = ["create_account", "find_caller", "list_accounts", "list_clients"]
