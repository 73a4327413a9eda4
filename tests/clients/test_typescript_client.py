"""The TypeScript client as a customer installs it: packed by npm, its types checked, its tests and
examples run by Node.
"""

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from frontdesk.web.problems import PROBLEMS
from tests.clients.conftest import BAD_ROW, CSV, Service, check_daily_sync
from tests.clients.node import MODULES, TOOLS, node, packed, succeeds

CLIENT = Path(__file__).parents[2] / "clients/typescript"
README = (CLIENT / "README.md").read_text()
EXAMPLES = re.findall(r"```ts\n(.*?)```(?:\n\n```\n(.*?)```)?", README, re.DOTALL)
SYNC = CLIENT / "examples/daily_sync.ts"


class App(NamedTuple):
    """A program of a customer, in a folder where the client is installed, and the service that it
    uses.
    """

    folder: Path
    service: Service

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return node(*command, folder=self.folder, environment=self.service.environment)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a customer in which the client is installed, as the service hands it out."""
    folder = tmp_path_factory.mktemp("typescript")
    package = packed(folder) / "frontdesk-client-0.1.0.tgz"
    app = folder / "app"
    with tarfile.open(package) as opened:
        opened.extractall(app / "node_modules", filter="data")
    (app / "node_modules/package").rename(app / "node_modules/frontdesk-client")
    for types in ("@types", "undici-types"):
        (app / "node_modules" / types).symlink_to(MODULES / types)
    (app / "package.json").write_text('{"type": "module"}')
    for program in (*(CLIENT / "test").glob("*.ts"), SYNC):
        shutil.copy(program, app)
    for number, (code, _) in enumerate(EXAMPLES):
        (app / f"example_{number}.ts").write_text(code)
    return app


@pytest.fixture
def app(installed: Path, service: Service, tmp_path: Path) -> App:
    return App(Path(shutil.copytree(installed, tmp_path / "app", symlinks=True)), service)


def test_the_types_are_those_of_the_openapi_document(tmp_path: Path) -> None:
    python = TOOLS / "bin/python"
    subprocess.run(
        [python, CLIENT / "generate.py", tmp_path / "schema.ts"], check=True, capture_output=True
    )
    assert (tmp_path / "schema.ts").read_text() == (CLIENT / "src/schema.ts").read_text(), (
        "The types of the TypeScript client are outdated. Write them anew: "
        ".venv/clients/bin/python clients/typescript/generate.py"
    )


def test_every_kind_of_problem_has_its_word() -> None:
    kinds = (
        (CLIENT / "src/errors.ts")
        .read_text()
        .partition("export type ProblemKind =")[2]
        .partition("| OAuthError")[0]
    )
    assert re.findall(r'"(\w+)"', kinds) == list(PROBLEMS)


def test_the_types_hold_for_the_tests_and_the_examples(installed: Path) -> None:
    options = (
        "--strict --exactOptionalPropertyTypes --noEmit --allowImportingTsExtensions --module "
        "nodenext --target esnext"
    )
    programs = sorted(path.name for path in installed.glob("*.ts"))
    succeeds(node(MODULES / "typescript/bin/tsc", *options.split(), *programs, folder=installed))


def test_the_package_is_small_and_has_no_dependency(installed: Path) -> None:
    package = installed / "node_modules/frontdesk-client"
    described = json.loads((package / "package.json").read_text())
    assert not {name for name in described if name.endswith("ependencies")}
    suffixes = {path.name.partition(".")[2] for path in (package / "dist").iterdir()}
    assert suffixes == {"js", "d.ts"}
    assert {path.name for path in package.iterdir()} == {"dist", "package.json", "README.md"}


@pytest.mark.parametrize("program", ["jobs.ts", "faults.ts"])
def test_each_job_is_done_by_the_service(program: str, app: App) -> None:
    succeeds(app.run("--test-reporter=spec", program))


def test_the_examples_of_the_readme_print_what_they_say(app: App) -> None:
    (app.folder / "members.csv").write_text(CSV + BAD_ROW)
    assert len(EXAMPLES[0][0].strip().splitlines()) <= 10
    assert sum(bool(output) for _, output in EXAMPLES) == 4
    for number, (code, output) in enumerate(EXAMPLES):
        (app.folder / f"example_{number}.ts").write_text(app.service.filled_in(code))
        printed = succeeds(app.run(f"example_{number}.ts"))
        assert printed == output or not output


def test_the_daily_sync_has_thirty_lines_and_says_what_became_of_the_file(app: App) -> None:
    def sync(service: Service) -> subprocess.CompletedProcess[str]:
        return app._replace(service=service).run(SYNC.name, "gold-2027", "members.csv")

    told = check_daily_sync(SYNC.read_text().partition("*/\n")[2], sync, app.service, app.folder)
    assert told.startswith("ApiError: 401 invalid_client")
