"""`frontdesk demo`: makes an installation to try, and prints the commands to try it with."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from io import StringIO
from typing import Annotated, Any

import typer

from frontdesk.cli.command_group import change_in, new_request, opened_database
from frontdesk.cli.installation import bring_up_to_date
from frontdesk.cli.layout import Part, field_table, heading, table
from frontdesk.cli.options import Json
from frontdesk.cli.output import Output, fail, settings
from frontdesk.cli.serve import listening_sockets, serve
from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config, Environment
from frontdesk.db import Database
from frontdesk.db.engine import write_alone
from frontdesk.log_output import LogOutput
from frontdesk.sandbox.demo_data import (
    Demo,
    HistoryState,
    find_demo_account,
    history_state,
    set_up_demo,
)
from frontdesk.sandbox.demo_users import DemoUser, set_up_demo_users

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
            made, users = _with_history(db, config)
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


def _with_history(db: Database, config: Config) -> tuple[Demo, list[DemoUser]]:
    """A new demo account with two weeks of history. Says so on stderr if that takes a while."""
    # These take as long to import as a demo without a history takes to make.
    from frontdesk.installation import run_options
    from frontdesk.sandbox.demo_history import (
        LENGTH,
        History,
        HistoryOptions,
        PastClock,
        begin_history,
    )

    requester = new_request()
    made = write_alone(db, lambda tx: begin_history(tx, requester))
    clock = PastClock(requester.now - LENGTH)
    users = set_up_demo_users(db, made.account.id, clock())
    with _post_office(db, config, clock) as deliver:
        options = HistoryOptions(run_options(config), clock, deliver, _tell_of_history)
        History(db, made, users, options).make()
    return made, users


def _tell_of_history() -> None:
    typer.echo("Making two weeks of history for the demo account ...", err=True)


@contextmanager
def _post_office(db: Database, config: Config, clock: Clock) -> Iterator[Callable[[], None]]:
    """A function that delivers what is due by the clock. Every mail is caught, also where the
    sandbox has a relay.
    """
    from frontdesk.invitations.hourly_window import HourlyWindows
    from frontdesk.invitations.protocol import DeliveryContext
    from frontdesk.mailbox.catcher import MailCatcher
    from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions, policy_of

    windows = HourlyWindows(lambda: clock().timestamp())
    options = WorkerOptions(
        context=DeliveryContext(policy_of(config), windows),
        read_time=lambda _tx: clock(),
        log=LogOutput(StringIO()),
    )
    worker = DeliveryWorker(config, db, MailCatcher(db, clock), options)

    def deliver() -> None:
        while worker.turn():
            pass

    try:
        yield deliver
    finally:
        worker.close()


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
