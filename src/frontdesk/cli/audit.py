"""`frontdesk audit`: the audit trail, newest entry first. No command changes an entry."""

from typing import Annotated

from frontdesk.audit import list_entries
from frontdesk.cli.command_group import CommandGroup
from frontdesk.cli.options import OnlyAccount, limit_option
from frontdesk.cli.output import Output, listing
from frontdesk.db import Tx

commands = CommandGroup()


@commands.query("list")
def list_(
    tx: Tx,
    account: OnlyAccount = None,
    limit: Annotated[int, limit_option(1_000_000, "The largest number of entries.")] = 100,
) -> Output:
    """List the audit entries, newest first: time, action, actor, subject and request.

    Example: frontdesk audit list --account 1 --limit 20
    """
    rows = list_entries(tx, account_id=account, limit=limit)
    columns = "at action actor account_id subject_id request_id detail"
    return listing(rows, columns, nothing="The audit trail is empty.")
