"""`frontdesk demo`: makes an installation to try, and prints the commands to try it with."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

import typer

from frontdesk.cli.command_group import change_in, opened_database
from frontdesk.cli.installation import bring_up_to_date
from frontdesk.cli.layout import Part, field_table, heading, table
from frontdesk.cli.options import Json
from frontdesk.cli.output import Output, fail, settings
from frontdesk.cli.serve import listening_sockets, serve
from frontdesk.clock import system_clock
from frontdesk.config import Environment
from frontdesk.sandbox.demo_data import (
    Demo,
    HistoryState,
    find_demo_account,
    history_state,
    set_up_demo,
)
from frontdesk.sandbox.demo_users import set_up_demo_users

HOST = "127.0.0.1"

MEMBER = {
    "external_id": "AB 123356",
    "member_id": "M-100200",
    "first_name": "Robin",
    "last_name": "Sample",
    "dob": "1977-01-11T00:00:00Z",
    "gender": "female",
    "email": "robin.sample@example.com",
    "zipcode": "02134",
    "effective_date": "2026-01-01",
    "invite_immediately": True,
}
_READ_ANSWER = """python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])'"""


def demo(
    *,
    port: Annotated[int, typer.Option(help="Port of the server.", min=1, max=65535)] = 8000,
    with_server: Annotated[
        bool,
        typer.Option("--serve/--no-serve", help="Serve afterwards, until Ctrl-C, on 127.0.0.1."),
    ] = False,
    moving: Annotated[
        bool, typer.Option("--moving/--still", help="While serving, let patients come and be seen.")
    ] = True,
    with_history: Annotated[
        bool | None,
        typer.Option(
            "--history/--no-history",
            help="Give a new demo account two weeks of files, mails and visits.",
            show_default="with --serve",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a demo account with plans, doctors and patients, and print how to try it; safe to run
    again.

    Every run gives the demo's client a fresh secret; the one before it works on. Not in production.

    Example: frontdesk demo --port 8123 --serve
    """
    variables = dict(os.environ)
    if not variables.get("FRONTDESK_BASE_URL"):
        variables["FRONTDESK_BASE_URL"] = f"http://{HOST}:{port}"
    config = settings(variables)
    if config.environment is Environment.PRODUCTION:
        fail(
            "The demo does not run where FRONTDESK_ENVIRONMENT is production. Use a sandbox installation."
        )
    if with_server:
        listening_sockets(HOST, port, workers=1)[0].close()
    with opened_database(config) as db:
        bring_up_to_date(db, config)
        wants_history = with_server if with_history is None else with_history
        if wants_history and db.ask(find_demo_account) is None:
            # Its imports take 0.1 s, which a demo without a history need not wait for.
            from frontdesk.cli.demo_history import set_up_with_history

            made, users = set_up_with_history(db, config)
        else:
            made = change_in(db, lambda context: set_up_demo(context.tx, context.requester))
            users = set_up_demo_users(db, made.account.id, system_clock())
        history = db.ask(lambda tx: history_state(tx, made.account.id))
    outcome = _outcome(made, config.base_url)
    outcome["history"] = history
    outcome["console_url"] = f"{config.console_origin}/console"
    outcome["users"] = [user._asdict() for user in users]
    Output(outcome, _parts(outcome)).print(as_json=as_json)
    if with_server:
        os.environ["FRONTDESK_BASE_URL"] = config.base_url  # the serving processes read it there
        with _moving_queues(made.account.id) if moving else nullcontext():
            serve(host=HOST, port=port, workers=1)


@contextmanager
def _moving_queues(account_id: int) -> Iterator[None]:
    """Runs a process that moves the demo's queues until the block ends. It ends by itself when this
    process is killed.
    """
    words = ("-m", "frontdesk", "queue", "simulate", "--account", str(account_id))
    with subprocess.Popen(  # noqa: S603 - words of our own
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as feeder:
        try:
            yield
        finally:
            feeder.terminate()


def _outcome(made: Demo, base_url: str) -> dict[str, Any]:
    return {
        "account_id": made.account.id,
        "account_created": made.is_new,
        "plan_ids": [plan.id for plan in made.plans],
        "client_id": made.client.client_id,
        "client_secret": made.secret,
        "token_command": _token_command(made, base_url),
        "member_command": _member_command(made, base_url),
        "plans_command": (
            f"curl -sS {shlex.quote(base_url + '/v2/plans')} {_BEARER} -H 'Accept: "
            "application/json'"
        ),
        "reference_url": f"{base_url}/docs",
        "openapi_url": f"{base_url}/openapi.json",
    }


_BEARER = '-H "Authorization: Bearer $TOKEN"'


def _token_command(made: Demo, base_url: str) -> str:
    fields = {
        "grant_type": "client_credentials",
        "client_id": made.client.client_id,
        "client_secret": made.secret,
    }
    form = " ".join(f"-d {name}={value}" for name, value in fields.items())
    return f"TOKEN=$(curl -sS {shlex.quote(base_url + '/oauth/token')} {form} | {_READ_ANSWER})"


def _member_command(made: Demo, base_url: str) -> str:
    address = shlex.quote(f"{base_url}/v2/plans/{made.plans[0].id}/eligibility")
    types = "-H 'Content-Type: application/json' -H 'Accept: application/json'"
    return f"curl -sS {address} {_BEARER} {types} -d {shlex.quote(json.dumps(MEMBER))}"


_HISTORIES = {
    HistoryState.NONE: "",
    HistoryState.MADE: ", with two weeks of history",
    HistoryState.INCOMPLETE: (
        ". Its history is incomplete, because the run that made it was ended: make a new database "
        "for a whole one"
    ),
}


def _parts(outcome: dict[str, Any]) -> list[Part]:
    """Each command is a line of its own: a line that the terminal breaks could not be pasted."""
    made = "made" if outcome["account_created"] else "there already"
    account = f"The demo account is {made}{_HISTORIES[outcome['history']]}."
    return [
        heading(f"{account} Its API client has a fresh secret:"),
        field_table({name: outcome[name] for name in ("client_id", "client_secret")}),
        heading("\nGet a token (it lives for two hours):"),
        outcome["token_command"],
        heading("\nPost an eligible member:"),
        outcome["member_command"],
        heading("\nList the plans:"),
        outcome["plans_command"],
        heading(f"\nSign in to the console at {outcome['console_url']}:"),
        table(outcome["users"], "role email password"),
        f"\nReference: {outcome['reference_url']}  (machine-readable: {outcome['openapi_url']})",
    ]
