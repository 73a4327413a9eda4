"""The files of deploy/ agree with the program: commands, settings, addresses, limits and times."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # schemathesis needs it, so it is there

from frontdesk.api.routes import ENDPOINTS
from frontdesk.cli.app import load
from frontdesk.config import FILE_ENDING, SETTINGS, read_config
from frontdesk.deadlines import BODY_SECONDS, UPLOAD_BYTES_SECONDS
from frontdesk.processes import STOP_SECONDS
from frontdesk.web.request import BATCH_LIMIT_BYTES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
MANIFESTS = sorted(DEPLOY.glob("kubernetes/*.yaml"))
SECRETS = [setting.name for setting in SETTINGS if setting.is_secret]
PATHS = {endpoint.path for endpoint in ENDPOINTS}
MIB = 1024 * 1024


def lines(unit: Path) -> Iterator[tuple[str, str, str]]:
    """Section, name and value of each line; a name may come again, which configparser does not
    take.
    """
    section = ""
    for line in unit.read_text().splitlines():
        if re.fullmatch(r"\[\w+\]", line):
            section = line
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert (bool(section), equals) == (True, "="), line
            assert re.fullmatch(r"[A-Z][A-Za-z]+", name), line
            yield section, name, value


def values(unit: Path, name: str) -> list[str]:
    return [value for _, each, value in lines(unit) if each == name]


def seconds(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(s|min)?", text).groups()  # type: ignore[union-attr]
    return float(number) * (60 if unit == "min" else 1)


def drain(settings: dict[str, str]) -> int:
    return read_config({**settings, "FRONTDESK_ENVIRONMENT": "production"}).drain


def parse(words: list[str]) -> dict[str, Any]:
    """The options of a command of frontdesk. Raises click's UsageError for a command or option that
    does not exist.
    """
    parameters: dict[str, Any] = load(words[0]).make_context(words[0], words[1:]).params
    return parameters


@pytest.mark.parametrize(
    "path",
    [path for path in DEPLOY.rglob("*") if path.is_file() and "secrets" not in path.parts],
    ids=lambda path: path.name,
)
def test_each_file_names_only_settings_that_exist(path: Path) -> None:
    known = {setting.variable for setting in SETTINGS}
    known |= {setting.variable + FILE_ENDING for setting in SETTINGS if setting.is_secret}
    text = path.read_text()
    assert set(re.findall(r"FRONTDESK_[A-Z_]*[A-Z]\b", text)) <= known
    assert "#" in text or path.suffix == ".json"  # it says what to change


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_and_hands_it_every_secret_as_a_file(unit: Path) -> None:
    [command] = values(unit, "ExecStart")
    program, *words = shlex.split(command)
    assert program == "/opt/frontdesk/bin/frontdesk"
    parse(words)
    credentials = [f"{name}:/etc/frontdesk/{name}" for name in SECRETS]
    assert values(unit, "LoadCredential") == credentials
    assert values(unit, "Environment") == [
        f"FRONTDESK_{name.upper()}_FILE=%d/{name}" for name in SECRETS
    ]
    assert (values(unit, "Type"), values(unit, "NotifyAccess")) == (["notify"], ["main"])
    assert seconds(values(unit, "TimeoutStopSec")[0]) > drain({}) + STOP_SECONDS


def test_the_socket_unit_has_a_socket_for_each_serving_process() -> None:
    unit = DEPLOY / "systemd/frontdesk.socket"
    service = DEPLOY / "systemd/frontdesk.service"
    command = parse(shlex.split(values(service, "ExecStart")[0])[1:])
    [address] = [value.partition(" ")[0] for value in nginx("server") if value]
    assert values(unit, "ListenStream") == [address] * command["workers"]
    assert values(unit, "ReusePort") == ["yes"]
    assert unit.name in values(service, "Requires")[0]
    assert unit.name in values(service, "After")[0]


def test_the_units_are_in_the_same_sandbox() -> None:
    first, *others = [
        unit.read_text().partition("# Nothing but its own state")[2] for unit in UNITS
    ]
    assert [first] == others
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
        "DynamicUser=yes",
    ):
        assert f"\n{line}\n" in first


def test_journald_drops_no_line_of_a_burst() -> None:
    assert [values(unit, "LogRateLimitIntervalSec") for unit in UNITS] == [["0"], ["0"]]


def test_the_service_may_open_as_many_files_as_it_serves_connections() -> None:
    source = (ROOT / "src/frontdesk/server.py").read_text()
    needed = sum(
        int(number)
        for number in re.findall(r"^(?:CONNECTIONS|FILES_BESIDE) = (\d+)", source, re.MULTILINE)
    )
    assert int(values(DEPLOY / "systemd/frontdesk.service", "LimitNOFILE")[0]) > needed


def test_the_settings_of_the_units_can_be_used_in_production() -> None:
    given = (DEPLOY / "systemd/settings").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in given if not line.startswith("#"))
    assert read_config(variables).environment == "production"


@pytest.mark.parametrize(
    "file",
    ["systemd/settings", "compose.yaml", "kubernetes/frontdesk.yaml", "kubernetes/migrate.yaml"],
)
def test_each_deployment_leaves_the_uniqueness_to_be_chosen(file: str) -> None:
    """A value here would be taken over by everybody who copies the file, and it can't be changed
    once there are members.
    """
    said = re.findall(
        r"^[^#\n]*FRONTDESK_UNIQUENESS(?:[:=]|, value:) *([^ #}\n]*)",
        (DEPLOY / file).read_text(),
        re.MULTILINE,
    )
    assert said
    assert set(said) <= {"", '""'}


def test_commands_of_root_get_the_settings_and_secrets_of_the_units(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd/frontdesk-admin").read_text()
    script = text.replace("/etc/frontdesk\n", f"{tmp_path}\n").replace(
        "/opt/frontdesk/bin/frontdesk", "env"
    )
    (tmp_path / "settings").write_text((DEPLOY / "systemd/settings").read_text())
    for name in ("database_url", "link_secret"):  # an installation without a relay
        (tmp_path / name).touch()
    given = {"PATH": "/usr/bin:/bin", "FRONTDESK_DATABASE_URL_FILE": "/owner"}
    by_path = subprocess.run(
        ["sh", "-c", script, "sh", "/usr/bin/env", "-u", "PATH"],
        env=given,
        capture_output=True,
        check=True,
    )
    assert b"\nPATH=" not in b"\n" + by_path.stdout  # another program got its arguments
    told = subprocess.run(
        ["sh", "-c", script], env=given, capture_output=True, text=True, check=True
    ).stdout
    found = dict(line.split("=", 1) for line in told.splitlines() if line.startswith("FRONTDESK_"))
    assert found["FRONTDESK_ENVIRONMENT"] == "production"
    assert {name: value for name, value in found.items() if name.endswith("_FILE")} == {
        "FRONTDESK_DATABASE_URL_FILE": "/owner",
        "FRONTDESK_LINK_SECRET_FILE": f"{tmp_path}/link_secret",
    }


def nginx(name: str) -> list[str]:
    """The values of a directive, in the order of the file."""
    text = re.sub(r"#.*", "", (DEPLOY / "nginx/frontdesk.conf").read_text())
    assert text.count("{") == text.count("}")
    return re.findall(rf"\b{name}\s+([^;{{]+?)\s*[;{{]", text)


def test_nginx_lets_pass_what_the_service_takes() -> None:
    batch, upload = (int(size.removesuffix("m")) * MIB for size in nginx("client_max_body_size"))
    assert batch > BATCH_LIMIT_BYTES
    assert upload > read_config({}).file_limit_mib * MIB
    pattern = nginx("location")[1].removeprefix("~ ")
    assert {path for path in PATHS if re.search(pattern, path)} == {
        "/v2/plans/{plan_id}/eligibility-files",
        "/v2/eligibility-files",
    }
    assert "/metrics" in PATHS & {location.removeprefix("= ") for location in nginx("location")}


def test_nginx_writes_no_body_to_its_disk() -> None:
    in_memory = int(nginx("client_body_buffer_size")[0].removesuffix("m"))
    batch, _ = (int(size.removesuffix("m")) for size in nginx("client_max_body_size"))
    assert in_memory > batch  # elsewhere than on the location of uploads, which go straight through
    assert nginx("proxy_request_buffering") == ["off"]
    assert nginx("proxy_max_temp_file_size") == ["0"]


def test_nginx_waits_longer_for_the_service_than_the_service_for_callers() -> None:
    assert seconds(nginx("proxy_read_timeout")[0]) > BODY_SECONDS
    assert seconds(nginx("client_body_timeout")[0]) > UPLOAD_BYTES_SECONDS


def test_nginx_leaves_an_idle_connection_before_the_service_closes_it() -> None:
    source = (ROOT / "src/frontdesk/server.py").read_text()
    [milliseconds] = re.findall(r"header_read_timeout=(\d+)", source)  # of idle connections, too
    to_service, _ = nginx("keepalive_timeout")
    assert seconds(to_service) * 1000 < int(milliseconds)


def test_nginx_is_the_proxy_that_the_settings_trust() -> None:
    assert "X-Forwarded-For $proxy_add_x_forwarded_for" in nginx("proxy_set_header")
    assert "127.0.0.1:8000 max_fails=0" in nginx("server")
    assert "FRONTDESK_TRUSTED_PROXIES=127.0.0.1\n" in (DEPLOY / "systemd/settings").read_text()


def test_the_image_runs_a_command_and_asks_for_its_health() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    [entry], [command] = (
        re.findall(rf"^{word} (\[.*\])$", text, re.MULTILINE) for word in ("ENTRYPOINT", "CMD")
    )
    assert json.loads(entry) == ["frontdesk"]
    assert parse(json.loads(command))["host"] == "0.0.0.0"  # noqa: S104  # of the container
    assert "/healthz" in PATHS & set(re.findall(r"8000(/\w+)", text))
    assert "--require-hashes" in text
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, re.MULTILINE)


def test_compose_names_only_what_there_is() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    secrets = compose["secrets"]
    for service in services.values():
        assert set(service.get("secrets", ())) <= secrets.keys()
        files = {
            value
            for name, value in service.get("environment", {}).items()
            if name.endswith("_FILE")
        }
        assert {Path(file).name for file in files} <= set(service.get("secrets", ()))
        assert service.get("depends_on", {}).keys() <= services.keys()
    ours = [service for service in services.values() if service["image"].startswith("frontdesk:")]
    assert [parse(service["command"]) is not None for service in ours] == [True] * 3
    assert all(service["read_only"] for service in ours)
    assert seconds(services["service"]["stop_grace_period"]) > drain({}) + STOP_SECONDS
    assert {Path(each["file"]).name for each in secrets.values()} == secrets.keys()
    scrape = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"][
        0
    ]["oauth2"]
    assert Path(scrape["client_secret_file"]).name in services["prometheus"]["secrets"]
    assert re.sub("http://service:8000", "", scrape["token_url"]) in PATHS


def objects() -> Iterator[dict[str, Any]]:
    for manifest in MANIFESTS:
        yield from yaml.safe_load_all(manifest.read_text())


def pods() -> list[dict[str, Any]]:
    return [each["spec"]["template"] for each in objects() if "template" in each.get("spec", {})]


def test_pods_run_commands_without_rights_and_read_their_secrets_from_files() -> None:
    assert len(pods()) == 3
    config = next(each["data"] for each in objects() if each["kind"] == "ConfigMap")
    settings = {name: value for name, value in config.items() if not name.endswith("_FILE")}
    assert read_config(settings).environment == "production"
    assert pods()[0]["spec"]["terminationGracePeriodSeconds"] > drain(settings) + STOP_SECONDS
    for pod in (template["spec"] for template in pods()):
        [container] = pod["containers"]
        parse(container["args"])
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        # FRONTDESK_SERVICE_HOST would be refused as no setting
        assert pod["enableServiceLinks"] is False
        own = {each["name"]: each["value"] for each in container.get("env", ())}
        folder = next(
            each["mountPath"] for each in container["volumeMounts"] if each["name"] == "secrets"
        )
        files = [value for name, value in (own or config).items() if name.endswith("_FILE")]
        assert files
        assert all(str(Path(file).parent) == folder for file in files)
        assert {each["name"] for each in container["volumeMounts"]} == {
            each["name"] for each in pod["volumes"]
        }


def test_temporary_files_of_containers_have_enough_room() -> None:
    [least] = re.findall(
        r"disk_free_bytes\) < (\d+) \* 1024\^3", (DEPLOY / "prometheus/alerts.yml").read_text()
    )
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    sizes = [
        size.removeprefix("/tmp:size=")
        for name in ("service", "worker")
        for size in services[name]["tmpfs"]
    ]
    volumes = [
        volume for pod in pods() for volume in pod["spec"]["volumes"] if volume["name"] == "tmp"
    ]
    folders = [volume["emptyDir"] for volume in volumes]
    # in memory the limit of the pod's memory would hold
    assert not any("medium" in folder for folder in folders)
    sizes += [folder["sizeLimit"].removesuffix("i").lower() for folder in folders]
    assert len(sizes) == 5
    assert all(int(size.removesuffix("g")) > int(least) for size in sizes)


def test_probes_ask_addresses_that_exist_and_selectors_find_pods() -> None:
    service, _, _ = (template["spec"]["containers"][0] for template in pods())
    asked = {name: service[name]["httpGet"]["path"] for name in service if name.endswith("Probe")}
    assert asked == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert set(asked.values()) <= PATHS
    labels = [template["metadata"]["labels"] for template in pods()]
    for each in objects():
        selector = each.get("spec", {}).get("selector", {})
        wanted = selector.get("matchLabels", selector)
        assert not wanted or wanted in labels, each["kind"]
    budget = next(each["spec"] for each in objects() if each["kind"] == "PodDisruptionBudget")
    replicas = next(each["spec"]["replicas"] for each in objects() if each["kind"] == "Deployment")
    assert budget["minAvailable"] < replicas  # a node can be emptied
