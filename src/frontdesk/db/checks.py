"""Finds the problems of an installation for this version and its settings, each with a remedy.

Checks the settings, the rights of files, the disk of SQLite, the database's server, schema and
role, and whether the database stores writes: a full disk and a standby answer every read. Free
space does not show a quota, a read-only mount or the disk of another machine, so it only warns.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError

from frontdesk.clock import system_clock
from frontdesk.config import SECRET_LENGTH, Config, Environment, is_this_machine
from frontdesk.db.engine import Database, Tx
from frontdesk.db.failures import AWAY_EVENT, PASSING, DatabaseState
from frontdesk.db.migrations.append_only import damaged_guards
from frontdesk.db.schema import load_tables
from frontdesk.db.service_role import current_role, wrong_rights
from frontdesk.errors import Unavailable

OLDEST_POSTGRESQL = 14
SKEW_SECONDS = 5
SKEW_WARNED = 2
FREE_BYTES = 2**30  # less is a warning

# The revision that this program needs: the newest migration's. Alembic would know it too, and takes
# 0.3 s to import.
_REVISIONS = {file.name[1:5] for file in Path(__file__).parent.glob("migrations/versions/v*.py")}
HEAD = max(_REVISIONS)

# Every column of the tables that the connection sees, whatever its rights.
_COLUMNS_SQLITE = """
    SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'
"""
_COLUMNS_POSTGRESQL = """
    SELECT t.relname, c.attname FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid
    WHERE t.relkind IN ('r', 'p') AND pg_table_is_visible(t.oid)
        AND c.attnum > 0 AND NOT c.attisdropped
"""

_REMEDIES: dict[str, str] = {
    DatabaseState.BUSY: (
        "Another program holds a lock on it (a migration, a backup?). Wait until it ends, "
        "then try again."
    ),
    DatabaseState.READ_ONLY: (
        "Give this user the right to write to it and its folder, or name the database that is no "
        "standby."
    ),
    DatabaseState.FULL: "Make room on its disk.",
    DatabaseState.DAMAGED: "Bring a backup back, or correct FRONTDESK_DATABASE_URL.",
    DatabaseState.SETTINGS: (
        "Name PostgreSQL itself in FRONTDESK_DATABASE_URL (docs/operations.md, Behind a pooler)."
    ),
    DatabaseState.RIGHTS: (
        "As the owner run: frontdesk migrate --service-role NAME (docs/security.md, "
        "Two roles of PostgreSQL)."
    ),
    DatabaseState.MISSING: "Run: frontdesk migrate (or correct FRONTDESK_DATABASE_URL).",
    DatabaseState.LOGIN: (
        "Correct user and password in FRONTDESK_DATABASE_URL (special characters stand there in "
        "their %XX form), or give the role on the server this password."
    ),
    DatabaseState.NOT_ADMITTED: (
        "Add a line for this machine, user and database to the server's pg_hba.conf and reload it."
    ),
    DatabaseState.NO_SUCH_DATABASE: (
        "Correct the name in FRONTDESK_DATABASE_URL, or make the database with: createdb."
    ),
    DatabaseState.HOST: "Correct the host in FRONTDESK_DATABASE_URL, or this machine's name service.",
    DatabaseState.NO_SERVER: "Start the server, or correct host and port in FRONTDESK_DATABASE_URL.",
    DatabaseState.TLS: (
        "Correct sslmode and sslrootcert in FRONTDESK_DATABASE_URL, or the server's certificate."
    ),
    DatabaseState.NO_PRIMARY: (
        "Promote a standby, or name the primary in FRONTDESK_DATABASE_URL (docs/operations.md, "
        "Failover)."
    ),
    DatabaseState.STARTING: "Wait until it has started; its own log says what it waits for.",
    DatabaseState.CROWDED: (
        "Raise max_connections on the server, lower FRONTDESK_POOL_CONNECTIONS, or run fewer "
        "processes (docs/scaling.md)."
    ),
    DatabaseState.SILENT: "Look at the server and at the network and firewalls on the way.",
}

MOUNTS = Path("/proc/self/mountinfo")
# SQLite's write-ahead log needs memory that all its processes share, so over these it can lose or
# damage records.
NETWORK_FILESYSTEMS = {
    *(
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "ocfs2",
    ),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "virtiofs"),
}
_GUARDS_REMEDY = (
    "As the owner of the tables run: frontdesk migrate, which makes the guards anew; "
    "then: frontdesk audit verify (docs/security.md, Append-only tables)."
)
FEWEST_CHARACTERS = 8  # different ones, in a secret
_RANDOM = f"{SECRET_LENGTH} or more random characters, such as those of: openssl rand -hex 32."
_WIDEST = {4: 8, 6: 7}  # lengths of the prefixes of the widest private networks, by version of IP
_OTHERS = 0o077  # rights of the group and of everybody

# how long a success and a failure are good for
FRESH_SECONDS = 5.0
RETRY_SECONDS = 1.0
WAIT_SECONDS = 1.0  # for another writer

# More pages than a token takes: a log with room for one more page is nearly full. SQLite overwrites
# them each time.
_WRITE_SQLITE = "UPDATE installation SET written = randomblob(32768)"
_WRITE_POSTGRESQL = "UPDATE installation SET written = decode(md5(random()::text), 'hex')"
# The row above fits into pages and into a log file that exist. 300 kB of a temporary file, which is
# gone at once, need new ones.
_SPILL = (
    "SELECT set_config('work_mem', '64kB', true)",
    "SELECT count(*) FROM generate_series(1, 15000)",
)


Columns = set[tuple[str, str]]  # the table and the name of each


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """`what` is wrong and its `remedy`, a sentence each. A service with a warning serves."""

    what: str
    remedy: str
    is_warning: bool = False


_EMPTY_REMEDY = "Name an empty database in FRONTDESK_DATABASE_URL, such as one made with: createdb."
_FOREIGN_REVISION = CheckFailure(
    "The tables of the database are those of another program: it keeps its own revision there.",
    _EMPTY_REMEDY,
)
_OLDER_TABLES_REMEDY = (
    "Use the version that has made them, or an empty database: no migration leads from these "
    "tables to those of this version."
)


def revision_of(db: Database) -> str | None:
    """The revision that the database's schema is at; None for an empty one."""

    def read(tx: Tx) -> str | None:
        if not inspect(tx).has_table("alembic_version"):
            return None
        return tx.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()

    return db.ask(read)


def uniqueness_of(db: Database) -> str:
    """Where identifiers are unique in this database (`Uniqueness`), fixed by its first migration.
    Raises Unavailable.
    """
    return str(
        db.ask(lambda tx: tx.exec_driver_sql("SELECT uniqueness FROM installation").scalar_one())
    )


def can_use(db: Database, revision: str | None) -> bool:
    """Whether this program can use the schema of this revision: its own, or a newer one that is
    backward compatible to it.
    """
    if revision is None or revision <= HEAD:
        return revision == HEAD
    since = db.ask(
        lambda tx: tx.exec_driver_sql("SELECT compatible_since FROM installation").scalar_one()
    )
    return str(since) <= HEAD


def wait_for_server(
    db: Database, tell: Callable[..., Any], *, waiting: Callable[[], None] = lambda: None
) -> None:
    """Return when the database answers, or when only a person can help. `tell` writes the log's
    lines about outages. `waiting` is called before each attempt.
    """
    while True:
        waiting()
        try:
            revision_of(db)
            break
        except Unavailable as error:
            if error.code not in PASSING:
                break
            if db.outage.tell is not tell:
                tell(AWAY_EVENT, pid=os.getpid(), cause=error.code, detail=error.detail)
        db.outage.tell = tell
        sleep(RETRY_SECONDS)
    db.outage.tell = tell


def problems(db: Database, config: Config, *, tries_write: bool = True) -> list[CheckFailure]:
    """Every problem with the database, its place and these settings; empty when all is well. Without
    `tries_write` nothing is written, and a database that takes no writes is not found out.
    """
    found = list(deployment_failures(config))
    try:
        return found + list(_problems(db, config, tries_write=tries_write))
    except (Unavailable, DBAPIError) as error:
        return [*found, _problem(error, "Start the database, or correct FRONTDESK_DATABASE_URL.")]


def _problems(db: Database, config: Config, *, tries_write: bool) -> Iterator[CheckFailure]:
    revision = revision_of(db)
    if not db.is_sqlite:
        yield from _server_problems(db)
    failure = schema_failure(db, revision)
    if failure is not None:
        yield failure
        return
    installed = uniqueness_of(db)
    if installed != config.uniqueness:
        what = f"FRONTDESK_UNIQUENESS is {config.uniqueness}, but this database was set up for {installed}."
        remedy = (
            f"Set FRONTDESK_UNIQUENESS={installed}; it can't be changed once there are records."
        )
        yield CheckFailure(what, remedy)
    yield from role_failures(db, config)
    if config.environment is Environment.PRODUCTION:
        yield from demo_user_failures(db)
    if revision == HEAD:  # a newer program may have made other guards
        yield from guard_failures(db)
    if not tries_write:
        return
    try:
        write_a_little(db)
    except (Unavailable, DBAPIError) as error:
        yield _problem(error, "Look for a read-only or full disk, or missing rights.")


def demo_user_failures(db: Database) -> Iterator[CheckFailure]:
    """The problem of users that a sandbox made: they sign in without a second factor. Raises
    Unavailable.
    """
    query = "SELECT id FROM users WHERE is_demo AND state = 'active' ORDER BY id"
    found = db.ask(lambda tx: tx.exec_driver_sql(query).scalars().all())
    if found:
        named = ", ".join(map(str, found[:5])) + (", …" if found[5:] else "")
        what = f"The database has demo users, who sign in without a second factor: {named}."
        yield CheckFailure(what, "End each of them with: frontdesk user end ID")


def schema_failure(db: Database, revision: str | None) -> CheckFailure | None:
    """Why this program can't use the tables of the database at this revision; None if it can.
    Raises Unavailable.
    """
    present = _columns_of(db)
    foreign = _foreign_failure(revision, present)
    if foreign is not None:
        return foreign
    if revision is None or not can_use(db, revision):
        return other_schema(revision)
    expected = {
        (table.name, column.name) for table in load_tables().tables.values() for column in table.c
    }
    lacking = sorted(f"{table}.{column}" for table, column in expected - present)
    if not lacking:
        return None
    more = f" and {len(lacking) - 1} more" if lacking[1:] else ""
    what = (
        f"The database is at revision {revision}, but its tables are those of an older version: "
        f"they lack {lacking[0]}{more}."
    )
    return CheckFailure(what, _OLDER_TABLES_REMEDY)


def foreign_failure(db: Database, revision: str | None) -> CheckFailure | None:
    """The problem of a database with tables of another program, which `migrate` must leave alone.
    Raises Unavailable.
    """
    return _foreign_failure(revision, _columns_of(db))


def _foreign_failure(revision: str | None, present: Columns) -> CheckFailure | None:
    if revision is None:
        return _foreign_table(present)
    return _FOREIGN_REVISION if _is_foreign(revision, present) else None


def _foreign_table(present: Columns) -> CheckFailure | None:
    """The problem of tables without a revision that have names of ours."""
    names = sorted({table for table, _ in present} & load_tables().tables.keys())
    if not names:
        return None
    what = f"The database has a table {names[0]} already, which no migration of frontdesk has made."
    return CheckFailure(what, _EMPTY_REMEDY)


def _is_foreign(revision: str, present: Columns) -> bool:
    """Whether the revision is that of another program, which keeps one in the same table."""
    is_ours = any(table == "installation" for table, _ in present)
    return not is_ours or (revision < HEAD and revision not in _REVISIONS)


def _columns_of(db: Database) -> Columns:
    """The table and the name of each column."""
    sql = _COLUMNS_SQLITE if db.is_sqlite else _COLUMNS_POSTGRESQL
    return db.ask(lambda tx: {(table, column) for table, column in tx.exec_driver_sql(sql)})


def other_schema(revision: str | None) -> CheckFailure:
    """The problem of a schema at another revision than HEAD."""
    if revision is None:
        return CheckFailure("The database has no tables yet.", "Run: frontdesk migrate")
    what = f"The database is at revision {revision}, this program needs {HEAD}."
    if revision < HEAD:
        return CheckFailure(what, "Run: frontdesk migrate")
    remedy = "A newer frontdesk has migrated the database: use that version, or a newer one."
    return CheckFailure(what, remedy)


def _server_problems(db: Database) -> Iterator[CheckFailure]:
    sql = (
        "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), "
        "clock_timestamp()"
    )
    version, encoding, now = db.ask(lambda tx: tx.exec_driver_sql(sql).one())
    skew = abs((now - system_clock()).total_seconds())
    if version // 10_000 < OLDEST_POSTGRESQL:
        what = f"PostgreSQL {version // 10_000} is too old."
        yield CheckFailure(what, f"Use PostgreSQL {OLDEST_POSTGRESQL} or newer.")
    if encoding != "UTF8":
        yield CheckFailure(
            f"The database's encoding is {encoding}.", "Create it with ENCODING 'UTF8'."
        )
    if skew > SKEW_WARNED:
        what = f"The database server's clock and this machine's differ by {skew:.1f} s."
        yield CheckFailure(what, "Let both follow a time server.", is_warning=skew <= SKEW_SECONDS)


def _problem(error: Exception, remedy: str) -> CheckFailure:
    """The problem of the database's error, with the error's remedy, else `remedy`."""
    if isinstance(error, Unavailable):
        return CheckFailure(error.detail, _REMEDIES.get(error.code, remedy))
    return CheckFailure("The database can't be used.", remedy)


def deployment_failures(config: Config) -> Iterator[CheckFailure]:
    """The problems of settings and machine, without the database."""
    folders = [Path(tempfile.gettempdir())]
    if config.environment is Environment.PRODUCTION:
        yield from _production_failures(config)
    if config.database_url.startswith("sqlite:///"):
        path = Path(config.database_url.removeprefix("sqlite:///")).absolute()
        yield from _disk_failures(path, is_warning=config.environment is not Environment.PRODUCTION)
        yield from _rights_failures(path)
        folders.append(path.parent)
    for folder in folders:
        with suppress(OSError):  # opening the database gives a better error
            if (free := shutil.disk_usage(folder).free) < FREE_BYTES:
                what = f"Only {free // 2**20:,} MiB are free on the disk of {folder}."
                yield CheckFailure(what, "Make room there.", is_warning=True)


def _production_failures(config: Config) -> Iterator[CheckFailure]:
    base_url = urlsplit(config.base_url)
    if base_url.scheme.lower() != "https" or is_this_machine(base_url.hostname or ""):
        what = (
            "FRONTDESK_BASE_URL is no https address that others can reach: tokens and links can "
            "be read, or lead nowhere."
        )
        yield CheckFailure(
            what, "Set it to the address that callers use, such as https://api.example.com."
        )
    if not config.console_url:
        what = (
            "FRONTDESK_CONSOLE_URL is not set, so the console has the origin of the API's reference, "
            "which runs a third party's script."
        )
        yield CheckFailure(
            what,
            "Set it to a host of its own, such as https://console.example.com.",
            is_warning=True,
        )
    if not config.link_secret:
        what = "FRONTDESK_LINK_SECRET is not set, so the links in invitations could be guessed."
        yield CheckFailure(what, f"Set it to {_RANDOM}")
    elif _can_be_guessed(config.link_secret):
        what = "FRONTDESK_LINK_SECRET can be guessed: it repeats itself, or has too few different characters."
        yield CheckFailure(
            what, f"Set it to {_RANDOM} Links in mails that were sent go on working."
        )
    if any(network.prefixlen < _WIDEST[network.version] for network in config.trusted_proxies):
        what = (
            "FRONTDESK_TRUSTED_PROXIES has a network wider than any private one: "
            "callers in it could write their own address."
        )
        remedy = (
            "Name the proxies' own addresses and networks; 10.0.0.0/8 and fc00::/7 are the widest "
            "that are taken."
        )
        yield CheckFailure(what, remedy)
    if config.smtp_url is None:
        what = "FRONTDESK_SMTP_URL is not set, so invitations wait and none is delivered."
        yield CheckFailure(
            what,
            "Set it to your relay, such as smtps://user:password@mail.example.com.",
            is_warning=True,
        )
    elif is_this_machine(config.mail_from.rpartition("@")[2]):
        what = (
            "FRONTDESK_MAIL_FROM is an address of localhost; relays refuse it, and bounces come "
            "back to nobody."
        )
        yield CheckFailure(what, "Set it to an address of yours, such as invitations@example.com.")


def _can_be_guessed(secret: str) -> bool:
    """True if the text is clearly not random: a repeated shorter text, or few different characters.

    32 random hexadecimal digits have fewer than 8 different ones once in 26 million times.
    """
    repeats = any(secret.startswith(secret[period:]) for period in range(1, len(secret) // 2 + 1))
    return repeats or len(set(secret)) < FEWEST_CHARACTERS


def _disk_failures(path: Path, *, is_warning: bool) -> Iterator[CheckFailure]:
    kind = filesystem_of(path)
    if kind in NETWORK_FILESYSTEMS:
        what = (
            f"The SQLite database lies on a network file system ({kind}), where several processes "
            "can damage it."
        )
        remedy = "Move it to a disk of this machine, or use PostgreSQL."
        yield CheckFailure(what, remedy, is_warning)


def filesystem_of(path: Path) -> str | None:
    """Linux's name of the path's kind of file system; None if unknown."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place = os.path.realpath(path)
    longest = -1
    kind = None
    # "36 35 98:0 /root /mount/point options - kind source options" (proc(5)); later lines lie on
    # top.
    for line in lines:
        mount, _, described = line.partition(" - ")
        point = mount.split(" ")[4].replace("\\040", " ")
        if (place + "/").startswith(point.rstrip("/") + "/") and len(point) >= longest:
            longest = len(point)
            kind = described.partition(" ")[0]
    return kind


def _rights_failures(path: Path) -> Iterator[CheckFailure]:
    """The database, its write-ahead log and copies beside it hold health records, and so does their
    folder.
    """
    try:
        beside = sorted(path.parent.glob(f"{path.name}*"))
        wide = [each for each in (path.parent, *beside) if each.stat().st_mode & _OTHERS]
    except OSError:
        return  # opening the database gives a better error
    for each in wide:
        rights = "700" if each.is_dir() else "600"
        what = f"Other users of this machine have rights to {each}."
        yield CheckFailure(what, f"Run: chmod {rights} {quote(str(each))}", is_warning=True)


def role_failures(db: Database, config: Config) -> Iterator[CheckFailure]:
    """Rights that the service needs and lacks; in production also rights that it has and does not
    need.
    """
    role = current_role(db)
    if role is None:
        return
    name = role.name
    is_production = config.environment is Environment.PRODUCTION
    if role.owns_tables:
        if is_production:
            what = (
                f"The service is the role {name}, which owns the tables: it could remove the "
                "triggers that keep the history."
            )
            yield CheckFailure(what, _remedy("SERVICE_ROLE"), is_warning=True)
        return
    lacking, excess = wrong_rights(db)
    if lacking:
        yield CheckFailure(f"The role {name} lacks {_first_of(lacking)}.", _remedy(name))
    if excess and is_production:
        what = f"The role {name} has rights that the service does not need: {_first_of(excess)}."
        yield CheckFailure(what, _remedy(name), is_warning=True)


def _first_of(rights: Sequence[str]) -> str:
    return rights[0] if len(rights) == 1 else f"{rights[0]}, and {len(rights) - 1} rights more"


def guard_failures(db: Database) -> Iterator[CheckFailure]:
    """Triggers of the append-only tables that are missing, disabled or changed, and a session in
    which none runs.
    """
    damaged = db.ask(damaged_guards)
    if damaged:
        first, *others = damaged
        more = f", and {len(others)} guards more are damaged" if others else ""
        what = f"The history and the audit trail can be changed: {first}{more}."
        yield CheckFailure(what, _GUARDS_REMEDY)
    if not db.is_sqlite:
        role = db.ask(
            lambda tx: tx.exec_driver_sql(
                "SELECT current_setting('session_replication_role')"
            ).scalar_one()
        )
        if role != "origin":
            what = (
                "The history and the audit trail can be changed: session_replication_role is "
                f"{role}, so no trigger runs."
            )
            yield CheckFailure(
                what,
                "As a superuser run: ALTER ROLE … RESET session_replication_role (or ALTER DATABASE …).",
            )


def _remedy(role: str) -> str:
    return (
        f"As the owner of the tables run: frontdesk migrate --service-role {quote(role)} "
        "(docs/security.md, Two roles)."
    )


def write_a_little(db: Database, *, wait_seconds: float | None = None) -> None:
    """Commit a small change that needs room on the disk. Raises Unavailable."""
    with db.write(wait_seconds=wait_seconds) as tx:
        for statement in (_WRITE_SQLITE,) if db.is_sqlite else (_WRITE_POSTGRESQL, *_SPILL):
            tx.exec_driver_sql(statement)


class WriteProbe:
    """`verify()` writes at most once in 5 s, or in 1 s after a failure, and otherwise repeats the
    last answer.

    A database that another writer has locked takes writes, so it passes. Call it from one thread.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._good_until = float("-inf")
        self._failure: Unavailable | None = None

    def verify(self) -> None:
        """Raises Unavailable while the database stores nothing."""
        if monotonic() >= self._good_until:
            self._failure = self._attempt()
            self._good_until = monotonic() + (RETRY_SECONDS if self._failure else FRESH_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _attempt(self) -> Unavailable | None:
        try:
            write_a_little(self._db, wait_seconds=WAIT_SECONDS)
        except Unavailable as error:
            return None if error.code == DatabaseState.BUSY else error
        return None
