"""Alerts, runbook and dashboard name what there is: metrics of the service, commands, sections.
promtool tests what fires.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from frontdesk.cli.app import load
from frontdesk.db import Database
from tests.conftest import Api
from tests.factories import make_operator

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
ALERTS = [rule for group in RULES for rule in group["rules"] if "alert" in rule]
RECORDED = {rule["record"] for group in RULES for rule in group["rules"] if "record" in rule}
RUNBOOK = (ROOT / "docs/runbook.md").read_text()
PANELS = json.loads((ROOT / "deploy/grafana/dashboard.json").read_text())["panels"]


def test_every_alert_has_a_section_of_the_runbook_and_every_section_an_alert() -> None:
    names = [alert["alert"] for alert in ALERTS]
    assert re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE) == names
    for alert in ALERTS:
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert alert["for"]
        assert re.fullmatch(r"[A-Z{][^\n]*\.", alert["annotations"]["summary"])
        assert alert["annotations"]["runbook_url"] == f"docs/runbook.md#{alert['alert'].lower()}"


def test_every_alert_is_in_the_rules_own_test() -> None:
    """Which promtool runs: promtool test rules deploy/prometheus/alerts_test.yml"""
    tested, *_ = yaml.safe_load((ROOT / "deploy/prometheus/alerts_test.yml").read_text())["tests"]
    fires = " ".join(each["labels"] for each in tested["promql_expr_test"][0]["exp_samples"])
    assert re.findall(r'alertname="(\w+)"', fires) == [alert["alert"] for alert in ALERTS]
    [file] = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["rule_files"]
    assert (ROOT / "deploy/prometheus" / file).exists()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_every_metric_of_alerts_and_dashboard_is_one_that_the_service_offers(
    api: Api, db: Database
) -> None:
    text = api.as_(make_operator(db).token).get("/metrics").text
    offered = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    asked = [rule["expr"] for group in RULES for rule in group["rules"]]
    asked += [target["expr"] for panel in PANELS for target in panel.get("targets", ())]
    assert {name for text in asked for name in re.findall(r"\bjob:\w+:\w+", text)} <= RECORDED
    words = re.findall(
        r"\b(?:frontdesk|process)_\w+", re.sub(r"\bjob:\w+:\w+", "", " ".join(asked))
    )
    named = {re.sub("_(bucket|sum|count)$", "", word) for word in words}
    assert len(named) > 15
    assert named <= offered


def test_panels_fit_and_ask_the_data_source_that_is_provisioned() -> None:
    [source] = yaml.safe_load((ROOT / "deploy/grafana/datasource.yaml").read_text())["datasources"]
    places: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        taken = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not places & taken
        assert at["x"] + at["w"] <= 24
        places |= taken
        assert panel["type"] == "row" or panel["datasource"]["uid"] == source["uid"]
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    mounted = (ROOT / "deploy/compose.yaml").read_text()
    assert "./grafana/dashboard.json:/etc/frontdesk-dashboards/" in mounted
    [provider] = yaml.safe_load((ROOT / "deploy/grafana/dashboards.yaml").read_text())["providers"]
    assert provider["options"]["path"] == "/etc/frontdesk-dashboards"


def commands(page: str) -> set[str]:
    """The commands of frontdesk in the shell blocks of a page of docs, and those for root between
    backticks.
    """
    text = (ROOT / "docs" / page).read_text()
    start = r"(?m)(?:^(?:\w+=\S+ )*frontdesk(?:-admin)?|`frontdesk-admin)"
    return {words.strip() for words in re.findall(rf"{start} ([a-z][^|<>\n`#]*)", text)}


@pytest.mark.parametrize("line", sorted(commands("runbook.md") | commands("operations.md")))
def test_a_command_of_the_pages_can_be_given(line: str) -> None:
    words = shlex.split(line)
    command: Any = load(words.pop(0))
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    # raises for an unknown option or a wrong number of arguments
    command.make_context("frontdesk", words)
