"""The blocks of docs/operations.md, typed in their order into one shell, make an installation.

Parts of the machine are stand-ins that do nothing: packages, units, nginx, Prometheus, curl. The
database and its tools, the files and every command of frontdesk are real.
"""

import re
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from frontdesk.db import open_database
from tests.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE.partition("\n## Restore\n")[0], re.DOTALL)
PLACES = [
    "/etc/frontdesk",
    "/etc/systemd/system",
    "/etc/nginx/sites-enabled",
    "/etc/prometheus",
    "/etc/cron.d",
    "/usr/local/sbin",
    "/var/lib",
    "/var/backups",
    "/opt/frontdesk/bin",
    "/root/frontdesk/dist",
    "/stand-ins",
]
STAND_INS = dict.fromkeys(("apt-get", "systemctl", "nginx", "promtool", "python3"), "true")
STAND_INS |= {"curl": "echo FrontdeskDown", "runuser": 'shift 3; exec "$@"'}
STAND_INS["install"] = (
    "exec /usr/bin/install $(echo \"$*\" | sed 's/ -o [a-z]*//')"  # the test's user owns all
)


def on(machine: Path, text: str) -> str:
    return re.sub(
        r"(?<![\w.:])/(?=(?:etc|usr/local|var/(?:backups|lib)|opt|root)/)", f"{machine}/", text
    )


def write_program(path: Path, does: str) -> None:
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, postgres: PostgresServer) -> Path:
    """A folder that stands for the machine's, with the program and what was copied there."""
    for place in PLACES:
        (tmp_path / place[1:]).mkdir(parents=True, exist_ok=True)
    copied = tmp_path / "root/frontdesk"
    shutil.copytree(ROOT / "deploy", copied / "deploy", ignore=shutil.ignore_patterns("secrets"))
    for script in ("systemd/frontdesk-admin", "restore-drill"):
        file = copied / "deploy" / script
        file.write_text(on(tmp_path, file.read_text()))
    frontdesk = Path(sys.executable).with_name("frontdesk")
    programs = {"python": sys.executable, "frontdesk": frontdesk, "pip": "true"}
    for name, program in programs.items():
        write_program(
            tmp_path / "opt/frontdesk/bin" / name, f'exec {shlex.quote(str(program))} "$@"'
        )
    for name, does in STAND_INS.items():
        write_program(
            tmp_path / "stand-ins" / name, f'echo "{name} $*" >>{tmp_path}/called; {does}'
        )
    return tmp_path


def test_the_first_day_leads_from_the_wheel_to_a_restored_backup(
    machine: Path, postgres: PostgresServer
) -> None:
    day = on(machine, "".join(BLOCKS)).replace("@127.0.0.1:5432/", f"@127.0.0.1:{postgres.port}/")
    path = f"{machine}/stand-ins:{machine}/usr/local/sbin:{postgres.bin_dir}:/usr/bin:/bin"
    environment = {
        "PATH": path,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(postgres.port),
        "PGUSER": "postgres",
    }
    try:
        done = subprocess.run(
            ["sh", "-euc", day], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        with closing(
            open_database(
                f"{postgres.url('frontdesk').replace('postgresql', 'postgresql+psycopg')}"
            )
        ) as db:
            clients: dict[str, str] = dict(
                db.ask(
                    lambda tx: tx.exec_driver_sql("SELECT name, client_id FROM api_clients").all()
                )
            )
    finally:
        postgres.drop_database("frontdesk")
    assert done.stdout.splitlines()[-1].startswith("PROVEN: ")
    for table, count in {"accounts": 1, "plans": 1, "api_clients": 2}.items():
        compared = f" *{count} in the backup *{count} in the live database"
        assert re.search(f"(?m)^{table}{compared}$", done.stdout), done.stdout
    assert (
        "The database is used as the role frontdesk_service, which owns none of the tables."
        in done.stdout
    )
    prometheus = machine / "etc/prometheus"
    assert f"client_id: {clients['Prometheus']}\n" in (prometheus / "prometheus.yml").read_text()
    assert len((prometheus / "metrics_secret").read_text()) == 43
    secrets = [
        path for path in (machine / "etc/frontdesk").iterdir() if path.stat().st_mode & 0o077
    ]
    assert secrets == []
    called = (machine / "called").read_text()
    assert [
        words
        for words in ("systemctl enable --now frontdesk frontdesk-worker", "nginx -t")
        if words not in called
    ] == []


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ["operations.md", "runbook.md"])
def test_links_to_a_section_lead_to_it(name: str) -> None:
    page = ROOT / "docs" / name
    anchors = {
        anchor(heading) for heading in re.findall(r"^##+ (.+)$", page.read_text(), re.MULTILINE)
    }
    own = set(re.findall(r"\]\(#([\w-]+)\)", page.read_text()))
    others = {
        target
        for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
        for target in re.findall(rf"{name}#([\w-]+)\)", path.read_text())
    }
    assert (own | others) - anchors == set()
