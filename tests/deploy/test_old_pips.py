"""The first day works with the pip that the system brings: old ones are stricter about pins than
the one that makes them.

The parts are stand-ins with the names, versions and needs of the installed ones, so nothing is
fetched; of each there is a newer version too, as in the index some weeks later. Both pips end with
Python 3.11, the one that these systems have.
"""

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from frontdesk import __version__

ROOT = Path(__file__).parents[2]
PIPS = sorted((ROOT / ".venv/old-pips").iterdir()) if sys.version_info < (3, 12) else []
PIN = re.compile(r"(?m)^([\w.-]+)(?:\[[\w,]+\])?==(\S+)")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def stand_in(installed: Distribution, folder: Path, *, version: str) -> Path:
    """A wheel that installs nothing, with the metadata of an installed distribution but for the
    version.
    """
    name = f"{canonical(installed.name).replace('-', '_')}-{version}"
    path = folder / f"{name}-py3-none-any.whl"
    files = {
        "METADATA": installed.read_text("METADATA") or "",
        "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    }
    record = ""
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
                .rstrip(b"=")
                .decode()
            )
            record += f"{name}.dist-info/{file},sha256={digest},{len(text.encode())}\n"
            wheel.writestr(f"{name}.dist-info/{file}", text)
        wheel.writestr(f"{name}.dist-info/RECORD", f"{record}{name}.dist-info/RECORD,,\n")
    return path


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an operator copies to the host: dist/, with a stand-in and its hash for each part."""
    folder = tmp_path_factory.mktemp("dist")
    make = ["make", "--silent", "--old-file=.venv/ready-to-run", "wheel", f"DIST={folder}"]
    subprocess.run(make, cwd=ROOT, check=True, capture_output=True)
    installed = {canonical(each.name): each for each in distributions()}
    parts = folder / "parts"
    parts.mkdir()
    lines = []
    for line in (folder / "requirements.txt").read_text().splitlines():
        if line.startswith("./frontdesk-"):
            lines.append(line)
        elif (pin := PIN.match(line)) is not None and canonical(pin[1]) in installed:
            part = installed[canonical(pin[1])]
            wheel = stand_in(part, parts, version=part.version)
            stand_in(part, parts, version=f"{part.version}.post1")
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            lines.append(f"{line.rstrip(' ').removesuffix(chr(92))} --hash=sha256:{digest}")
    (folder / "requirements.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("pip", PIPS, ids=lambda path: path.name)
def test_the_first_day_works_with_the_pip_of_the_system(
    pip: Path, first_day: Path, tmp_path: Path
) -> None:
    page = (ROOT / "docs/operations.md").read_text()
    [documented] = re.findall(r"bin/pip install (--.*) -r requirements.txt", page)
    options = (
        "--quiet",
        "--isolated",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--no-index",
    )
    command = [
        sys.executable,
        str(pip / "pip"),
        "install",
        *options,
        "--find-links",
        "parts",
        "--target",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, *documented.split(), "-r", "requirements.txt"],
        cwd=first_day,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / f"frontdesk-{__version__}.dist-info").is_dir()
    assert (tmp_path / "frontdesk" / "server.py").is_file()


def test_two_old_pips_are_tried() -> None:
    assert [path.name for path in PIPS] == (
        ["debian-12", "ubuntu-22.04"] if sys.version_info < (3, 12) else []
    )
