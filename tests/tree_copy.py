"""A copy of the repository, in which a test changes the code as a contributor would."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST_FILES = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
PYTEST = ("-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider")
NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take half of the time of a start


def run_python(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder of a tree: it imports the package and the tests from there."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join((str(folder / "src"), str(folder)))
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=kept | {"PYTHONPATH": path} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


class TreeCopy:
    """The files that git has or would add, in a folder of their own. What Python has compiled of
    the package comes along, so that a program does not compile it once more.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(LIST_FILES, cwd=ROOT, capture_output=True, text=True, check=True)
        names = [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]
        names += [str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/__pycache__/*.pyc")]
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        (folder / ".venv").symlink_to(ROOT / ".venv")  # the generators of clients

    def insert(self, path: str, text: str, *, before: str) -> None:
        """Write the text in front of another one, which the file has once."""
        content = (self.folder / path).read_text()
        assert content.count(before) == 1, f"{path} has {content.count(before)} times: {before}"
        (self.folder / path).write_text(content.replace(before, text + before))

    def run(self, *command: str, **variables: str) -> str:
        """The output of a Python program. Fails with all that it wrote."""
        ran = run_python(self.folder, *command, **variables)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def failing(self, *tests: str, **variables: str) -> list[str]:
        """The names of the tests that fail."""
        ran = run_python(self.folder, *PYTEST, *tests, **NO_PLUGINS, **variables)
        assert ran.returncode in (0, 1), ran.stdout + ran.stderr
        lines = ran.stdout.splitlines()
        return [line.split("::")[1].split(" ")[0] for line in lines if line.startswith("FAILED ")]
