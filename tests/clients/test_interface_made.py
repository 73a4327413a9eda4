"""`make interface` changes nothing: what is made from the declarations is up to date."""

import shutil
from pathlib import Path

from tests.interface.made import MARKED, ROOT, SNAPSHOT, write

MADE = (
    SNAPSHOT,
    Path("docs/interface.md"),
    Path("clients/python/src/frontdesk_client/models.py"),
    Path("clients/typescript/src/schema.ts"),
)


def test_what_is_made_from_the_interface_is_up_to_date(tmp_path: Path) -> None:
    for folder in ("docs", "clients", SNAPSHOT.parent):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for name in (".venv", "pyproject.toml"):  # the generators and their settings
        (tmp_path / name).symlink_to(ROOT / name)
    for path in (SNAPSHOT, *MADE[2:]):
        (tmp_path / path).write_text("{}")
    page = tmp_path / MADE[1]
    page.write_text(MARKED.sub(r"\1x\3", page.read_text()))
    write(tmp_path)
    outdated = [path for path in MADE if (tmp_path / path).read_text() != (ROOT / path).read_text()]
    assert outdated == [], "run: make interface"
