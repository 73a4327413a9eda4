"""Commands as functions that return their output. Each gets --json, and a transaction if it needs
one.
"""

import getpass
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar

import typer

from frontdesk import audit, codes
from frontdesk.access.accounts import get_account
from frontdesk.audit import Requester
from frontdesk.cli.options import Json
from frontdesk.cli.output import MISUSED, Output, fail, settings
from frontdesk.clock import system_clock
from frontdesk.config import Config
from frontdesk.db import Database, Tx, open_database
from frontdesk.db.checks import HEAD, revision_of, schema_failure, wait_for_server
from frontdesk.db.engine import write_alone
from frontdesk.db.failures import DatabaseState
from frontdesk.errors import FrontdeskError, Unavailable

ACTOR_LENGTH = 64  # the audit trail's column

Answer = TypeVar("Answer")
Function = Callable[..., Output]
Transaction = Callable[[Function], Output]  # `ask` or `change`


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The context of a command that changes data: a transaction, its time, and the person
    responsible for it.
    """

    tx: Tx
    requester: Requester

    @property
    def now(self) -> datetime:
        return self.requester.now

    def record(
        self,
        action: str,
        *,
        account_id: int | None = None,
        subject_id: int | None = None,
        **detail: Any,
    ) -> None:
        """Add an audit entry to the transaction. `detail` may hold names and ids only."""
        audit.record_action(self.tx, self.requester, action, account_id, subject_id, **detail)


def opened_database(config: Config, *, index_scans: bool = False) -> closing[Database]:
    """The database, migrated or not; arguments and errors of `open_database`."""
    pool_size = config.pool_connections
    return closing(open_database(config.database_url, pool_size=pool_size, index_scans=index_scans))


@contextmanager
def migrated_database(
    config: Config, *, index_scans: bool = False, tell: Callable[..., Any] | None = None
) -> Iterator[Database]:
    """The database with tables that this version can use, else FrontdeskError; with `tell`, after
    `wait_for_server`.
    """
    with opened_database(config, index_scans=index_scans) as db:
        if tell is not None:
            wait_for_server(db, tell)
        try:
            revision = revision_of(db)
            # A command that is run once reads the revision only.
            is_known = revision == HEAD and tell is None
            failure = None if is_known else schema_failure(db, revision)
        except Unavailable as error:
            if error.code != DatabaseState.MISSING:
                raise
            remedy = "Run: frontdesk migrate (or correct FRONTDESK_DATABASE_URL)."
            raise FrontdeskError(f"{error.detail} {remedy}", code=error.code) from None
        if failure is not None:
            raise FrontdeskError(
                f"{failure.what} {failure.remedy}", code=codes.operators.OTHER_REVISION
            )
        yield db


def ask(question: Callable[[Tx], Answer]) -> Answer:
    """`question(tx)` in a transaction that only reads. Raises FrontdeskError."""
    with migrated_database(settings()) as db:
        return db.ask(question)


def change(work: Callable[[CommandContext], Answer]) -> Answer:
    """`work(context)` in one transaction, repeated after a lost race. Raises FrontdeskError."""
    with migrated_database(settings()) as db:
        return change_in(db, work)


def change_in(db: Database, work: Callable[[CommandContext], Answer]) -> Answer:
    """`change` on a database that is open already."""
    requester = new_request()
    answer = write_alone(db, lambda tx: work(CommandContext(tx, requester)))
    db.announce_work()
    return answer


def new_request() -> Requester:
    """The person at this command line, with the id and the time of the call. In a container the
    user may have no name.
    """
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = str(os.getuid())
    actor = f"cli:{''.join(filter(str.isprintable, name))}"[:ACTOR_LENGTH]
    return Requester(actor, f"cli-{secrets.token_hex(8)}", system_clock())


class CommandGroup(typer.Typer):
    """The commands of one subject; `COMMANDS` in app.py has its help. The account of `--account`
    has to exist.

    A command's `example` is what its help shows behind `frontdesk`, the group and the command.
    """

    def __init__(self, name: str) -> None:
        super().__init__(no_args_is_help=True)
        self.name = name
        self.callback()(lambda: None)  # a group also of a single command

    def query(self, name: str, example: str) -> Callable[[Function], None]:
        """Add a command that reads. Its first parameter is the transaction."""
        return partial(self._add, name, example, transaction=ask)

    def change(
        self, name: str, example: str, *, wants_option: bool = False
    ) -> Callable[[Function], None]:
        """Add a command that writes. Its first parameter is a CommandContext; a lost race calls it
        again.

        With `wants_option`, a call without any of the options that may be left out is misuse.
        """
        return partial(self._add, name, example, transaction=change, wants_option=wants_option)

    def standalone(self, name: str, example: str) -> Callable[[Function], None]:
        """Add a command that opens what it needs by itself."""
        return partial(self._add, name, example)

    def _add(self, name: str, example: str, function: Function, **how: Any) -> None:
        command = printing(function, **how)
        command.__doc__ = (
            f"{cleandoc(function.__doc__ or '')}\n\nExample: frontdesk {self.name} {name} {example}"
        )
        self.command(name)(command)


def printing(
    function: Function, transaction: Transaction | None = None, *, wants_option: bool = False
) -> Callable[..., None]:
    """A command that prints what `function` returns; with `transaction`, `ask` or `change`, it is
    called in there.
    """
    parameters = list(signature(function, eval_str=True).parameters.values())
    if transaction is not None:
        del parameters[0]
    optional = [each for each in parameters if each.default is not Parameter.empty]

    def command(*, call: typer.Context, as_json: bool, **options: Any) -> None:
        if wants_option and all(options[each.name] == each.default for each in optional):
            usage = f"{call.command_path} --help"
            fail(f"Nothing to set: give at least one option (see {usage}).", status=MISUSED)
        if (account := options.get("account")) is not None:
            ask(partial(get_account, account_id=account))
        output = transaction(partial(function, **options)) if transaction else function(**options)
        output.print(as_json=as_json)

    declared = [
        Parameter("call", Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters),
        Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=Json),
    ]
    command.__doc__ = function.__doc__
    command.__annotations__ = {each.name: each.annotation for each in declared}
    vars(command)["__signature__"] = signature(command).replace(parameters=declared)
    return command
