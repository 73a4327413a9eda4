"""What `make wheel` makes is all that an operator needs: the program, the sandbox apart, and every
part that they need, with its hash.
"""

import json
import os
import re
import secrets
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from frontdesk import SANDBOX_WHEEL, __version__
from frontdesk.cli.app import SANDBOX_COMMANDS

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("FRONTDESK_", "MAKE", "MFLAGS"))
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run("make", "--silent", "--old-file=.venv/ready-to-run", "wheel", f"DIST={folder}")
    return folder


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheel_of(dist: Path, name: str = "frontdesk") -> Path:
    [wheel] = dist.glob(f"{name}-*.whl")
    return wheel


def files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist() if ".dist-info/" not in name}


def test_the_two_wheels_hold_every_file_of_the_package(dist: Path) -> None:
    package = {
        str(path.relative_to(ROOT / "src")): path.read_bytes()
        for path in (ROOT / "src/frontdesk").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not is_packed(path)
    }
    of_sandbox = {name for name in package if name.startswith("frontdesk/sandbox/")}
    sandbox = files_of(wheel_of(dist, "frontdesk_sandbox"))
    assert sandbox.keys() == of_sandbox
    production = files_of(wheel_of(dist))
    assert re.fullmatch(rb"[0-9a-f]{12}\n|unknown\n", production.pop("frontdesk/revision"))
    packed = {name for name in production if is_packed(ROOT / "src" / name)}
    assert {Path(name).suffix for name in packed} == {".whl", ".tgz"}
    assert production.keys() - packed == package.keys() - of_sandbox
    held = production | sandbox
    assert [name for name in package if held[name] != package[name]] == []


def is_packed(path: Path) -> bool:
    """Whether the file is a package of a client, or the mark that they are made."""
    return path.parent == ROOT / "src/frontdesk/api/assets/clients"


def test_the_sandbox_needs_the_program_of_its_version(dist: Path) -> None:
    with zipfile.ZipFile(wheel_of(dist, "frontdesk_sandbox")) as wheel:
        metadata = wheel.read(f"frontdesk_sandbox-{__version__}.dist-info/METADATA").decode()
    assert re.findall(r"(?m)^Requires-Dist: (.*)$", metadata) == [f"frontdesk=={__version__}"]
    assert wheel_of(dist, "frontdesk_sandbox").name == SANDBOX_WHEEL


def test_the_requirements_are_those_of_the_run_time_each_with_its_hash(dist: Path) -> None:
    text = (dist / "requirements.txt").read_text()
    lines = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^\s*#.*\n", "", text)).splitlines()
    assert all("--hash=sha256:" in line for line in lines)
    pinned = {line.partition("==")[0].partition("[")[0] for line in lines if "==" in line}
    with zipfile.ZipFile(wheel_of(dist)) as wheel:
        metadata = wheel.read(f"frontdesk-{__version__}.dist-info/METADATA").decode()
    needed = {name.lower() for name in re.findall(r"(?m)^Requires-Dist: ([\w-]+)", metadata)}
    assert needed <= pinned
    assert not pinned & {"flit-core", "pytest", "ruff", "mypy", "schemathesis", "pip-audit"}


def installed(dist: Path, folder: Path, *requirements: str) -> Path:
    """An environment with the wheels that the last lines of these files name, each checked by its
    hash. Its other parts are those of `make setup`, by a path.
    """
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    [packages] = venv.glob("lib/python*/site-packages")
    (packages / "parts.pth").write_text(
        str(next((ROOT / ".venv/lib").glob("python*/site-packages")))
    )
    lines = [(dist / name).read_text().splitlines()[-1] for name in requirements]
    (folder / "wheels.txt").write_text("\n".join(lines))
    options = (
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
        "--require-hashes",
    )
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin/python", "install")
    run(*pip, *options, "-r", folder / "wheels.txt", cwd=dist)
    where = run(
        venv / "bin/python", "-c", "import frontdesk; print(frontdesk.__file__)", cwd=folder
    )
    assert Path(where).is_relative_to(venv)
    return venv / "bin"


@pytest.fixture(scope="module")
def production(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(dist, tmp_path_factory.mktemp("production"), "requirements.txt")


def test_production_runs_without_the_sandbox(production: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    variables = {
        "FRONTDESK_ENVIRONMENT": "production",
        "FRONTDESK_DATABASE_URL": f"sqlite:///{tmp_path}/data/frontdesk.db",
        "FRONTDESK_BASE_URL": "https://api.example.com",
        "FRONTDESK_LINK_SECRET": secrets.token_hex(32),
        "FRONTDESK_UNIQUENESS": "service",
    }
    program = production / "frontdesk"
    assert run(program, "--version") == f"frontdesk {__version__}\n"
    run(program, "migrate", cwd=tmp_path, **variables)
    assert json.loads(run(program, "check", "--json", cwd=tmp_path, **variables))["ok"] is True
    assert json.loads(run(program, "queue", "list", "--json", cwd=tmp_path, **variables)) == []


def test_only_commands_of_the_sandbox_import_it(production: Path, tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(IMPORT_ALL)
    failed = json.loads(run(production / "python", "walk.py", cwd=tmp_path))
    commands = {f"frontdesk.cli.{name}" for name in SANDBOX_COMMANDS}
    assert failed.keys() <= commands
    assert set(failed.values()) <= {"frontdesk.sandbox"}


IMPORT_ALL = """\
import importlib, json, pkgutil
import frontdesk

failed = {}
for module in pkgutil.walk_packages(frontdesk.__path__, "frontdesk."):
    if module.name in ("frontdesk.__main__", "frontdesk.db.migrations.env"):  # programs
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        failed[module.name] = error.name
print(json.dumps(failed))
"""


@pytest.mark.parametrize(
    "words",
    ["demo --serve", "demo --help", "sample --members 3 --nonsense", "queue simulate --speed 2"],
)
@pytest.mark.parametrize("environment", ["production", "sandbox", ""])
def test_a_command_of_the_sandbox_names_the_wheel_that_it_needs(
    production: Path, tmp_path: Path, words: str, environment: str
) -> None:
    refused = subprocess.run(
        [production / "frontdesk", *words.split()],
        cwd=tmp_path,
        env=ENVIRONMENT | {"FRONTDESK_ENVIRONMENT": environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: The command ")
    assert f"pip install --no-deps {SANDBOX_WHEEL}" in refused.stderr


def test_a_sandbox_has_both_wheels(dist: Path, tmp_path: Path) -> None:
    program = (
        installed(dist, tmp_path, "requirements.txt", "requirements-sandbox.txt") / "frontdesk"
    )
    database = f"sqlite:///{tmp_path}/data/frontdesk.db"
    made = json.loads(run(program, "demo", "--json", cwd=tmp_path, FRONTDESK_DATABASE_URL=database))
    assert made["account_created"] is True
    assert "All is well" in run(program, "check", cwd=tmp_path, FRONTDESK_DATABASE_URL=database)
    csv = run(program, "sample", "--members", "3", cwd=tmp_path)
    assert len(csv.splitlines()) == 4
