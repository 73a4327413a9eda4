"""The one table of fields: what is parsed, described, stored and read from a file follows from it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import frontdesk

ROOT = Path(__file__).parents[2]
PACKAGE = Path(frontdesk.__file__).parent
LAST_FIELD = '        Field("metadata",'
NEW_FIELD = '        Field("nickname", SHORT_TEXT, False, "Nickname.", "Robbie"),\n'


def test_a_field_that_is_added_to_the_table_is_parsed_stored_described_and_found_in_files(
    tmp_path: Path,
) -> None:
    package = copy_with_new_field(tmp_path)
    environment = os.environ | {"PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.eligibility.new_field", str(tmp_path / "members.db")]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.pop("described")["description"].startswith("Nickname. ")
    assert found == {"ignored": [], "stored": "Robbie", "history": [None, "Robbie"], "column": "nickname"}


def copy_with_new_field(folder: Path) -> Path:
    """The package with one line more in its table; all other files are the package's own."""
    package = folder / "package" / "frontdesk"
    for original in (PACKAGE, PACKAGE / "eligibility"):
        copy = package / original.relative_to(PACKAGE)
        copy.mkdir(parents=True, exist_ok=True)
        for path in original.iterdir():
            if path.name not in ("eligibility", "__pycache__"):
                (copy / path.name).symlink_to(path)
    table = package / "eligibility" / "fields.py"
    source = table.read_text()
    assert LAST_FIELD in source
    table.unlink()
    table.write_text(source.replace(LAST_FIELD, NEW_FIELD + LAST_FIELD))
    return package
