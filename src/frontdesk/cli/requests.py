"""`frontdesk requests`: which API clients take the service's time."""

from typing import Annotated

from frontdesk.access import list_accounts, list_clients
from frontdesk.cli.command_group import CommandGroup
from frontdesk.cli.options import option
from frontdesk.cli.output import Output, listing
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.reach import EVERY
from frontdesk.usage import list_request_costs, oldest_slot

MOST_MINUTES = 2 * 24 * 60  # that are kept
COLUMNS = "client_id name account_id requests loop_seconds database_seconds share"
NOTE = (
    "Time of the event loops and of transactions, and the share of both. A process adds its counts "
    "once a minute."
)

commands = CommandGroup("requests")


@commands.query("top", "--minutes 60 --limit 10")
def top(
    tx: Tx,
    minutes: Annotated[
        int, option("Requests of so many minutes, to full ten.", min=1, max=MOST_MINUTES)
    ] = 60,
    limit: Annotated[int, option("The largest number of clients.", min=1, max=1000)] = 10,
) -> Output:
    """Show the API clients whose requests took most of the service's time.

    A row without a client is for requests without a known one, such as wrong tokens and health
    probes.
    """
    costs = list_request_costs(tx, oldest_slot(system_clock(), minutes))
    total = sum(each.loop_us + each.database_us for each in costs)
    clients = {each.id: each for each in list_clients(tx, EVERY)}
    accounts = {each.id: each.name for each in list_accounts(tx, EVERY)}
    rows = []
    for each in costs[:limit]:
        client = clients.get(each.client)
        account_id = each.account_id
        rows.append(
            {
                "client_id": client and client.client_id,
                "name": client and client.name,
                "account_id": account_id,
                "account": None if account_id is None else accounts.get(account_id),
                "requests": each.requests,
                "loop_seconds": round(each.loop_us / 1e6, 3),
                "database_seconds": round(each.database_us / 1e6, 3),
                "share": round((each.loop_us + each.database_us) / total, 3) if total else 0.0,
            }
        )
    return listing(rows, COLUMNS, NOTE, nothing="No requests were counted in this time.")
