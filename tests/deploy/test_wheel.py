"""What `make wheel` makes is all that an operator needs: the whole package, and every part that it needs, with its hash."""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from frontdesk import __version__

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("FRONTDESK_", "MAKE", "MFLAGS"))
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


def wheel_of(dist: Path) -> Path:
    [wheel] = dist.glob("*.whl")
    return wheel


def test_the_wheel_holds_every_file_of_the_package(dist: Path) -> None:
    package = {
        str(path.relative_to(ROOT / "src")): path.read_bytes()
        for path in (ROOT / "src/frontdesk").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel_of(dist)) as wheel:
        held = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert re.fullmatch(rb"[0-9a-f]{12}\n|unknown\n", held.pop("frontdesk/revision"))
    assert held.keys() == package.keys()
    assert [name for name in package if held[name] != package[name]] == []


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


def test_the_wheel_runs_in_an_environment_of_its_own(dist: Path, tmp_path: Path) -> None:
    """The other parts are those of `make setup`, by a path; the package comes from the wheel, checked by its hash."""
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    [packages] = venv.glob("lib/python*/site-packages")
    (packages / "parts.pth").write_text(str(next((ROOT / ".venv/lib").glob("python*/site-packages"))))
    line = (dist / "requirements.txt").read_text().splitlines()[-1]
    assert line.endswith(hashlib.sha256(wheel_of(dist).read_bytes()).hexdigest())
    (tmp_path / "wheel.txt").write_text(line)
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--require-hashes")
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin/python", "install")
    run(*pip, *options, "-r", tmp_path / "wheel.txt", cwd=dist)
    program = venv / "bin/frontdesk"
    assert run(program, "--version") == f"frontdesk {__version__}\n"
    where = run(venv / "bin/python", "-c", "import frontdesk; print(frontdesk.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(venv)
    database = f"sqlite:///{tmp_path}/data/frontdesk.db"
    run(program, "migrate", cwd=tmp_path, FRONTDESK_DATABASE_URL=database)
    assert "All is well" in run(program, "check", cwd=tmp_path, FRONTDESK_DATABASE_URL=database)
