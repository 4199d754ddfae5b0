"""The shipped dashboards and rules, read from their files."""

import json
import re
from dataclasses import dataclass

import yaml
from pandod_process import REPOSITORY

MONITORING = REPOSITORY / "deploy" / "monitoring"
DASHBOARDS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))
}
_LABEL = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class PanelQuery:
    dashboard: str
    panel: dict
    target: dict

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel['title']} {self.target['refId']}"

    @property
    def labels(self) -> set[str]:
        """Returns the labels that tell the lines or rows of the panel apart."""
        if self.panel["type"] == "table":
            return {"job", "instance"}
        return set(_LABEL.findall(self.target["legendFormat"]))


def panels(dashboard: dict) -> list[dict]:
    """Returns the panels of the dashboard, without the titles of rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def value_variables(dashboard: dict) -> list[dict]:
    """Returns the variables that take their values from Prometheus."""
    variables = dashboard["templating"]["list"]
    return [variable for variable in variables if variable["type"] == "query"]


def panel_queries() -> list[PanelQuery]:
    return [
        PanelQuery(uid, panel, target)
        for uid, dashboard in DASHBOARDS.items()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def rules(file: str) -> dict[str, dict]:
    """Returns a file's rules by the name of the alert or of the recorded series."""
    groups = yaml.safe_load((MONITORING / "rules" / file).read_text())["groups"]
    return {
        rule.get("alert") or rule["record"]: rule
        for group in groups
        for rule in group["rules"]
    }


ALERTS = rules("alerts.yaml")
RECORDED = rules("recorded.yaml")
