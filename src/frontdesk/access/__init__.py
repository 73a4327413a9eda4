"""Accounts, API clients, their secrets and tokens, and how many requests a client may make."""

from frontdesk.access.store import account_is_active as account_is_active
from frontdesk.access.store import caller_of as caller_of
from frontdesk.access.store import client_number as client_number
from frontdesk.access.store import count_clients as count_clients
from frontdesk.access.store import create_account as create_account
from frontdesk.access.store import find_account_names as find_account_names
from frontdesk.access.store import find_client_ids as find_client_ids
from frontdesk.access.store import find_client_names as find_client_names
from frontdesk.access.store import list_account_page as list_account_page
from frontdesk.access.store import list_accounts as list_accounts
from frontdesk.access.store import list_clients as list_clients
from frontdesk.access.store import list_live_clients as list_live_clients
from frontdesk.access.store import list_revoked_clients as list_revoked_clients
