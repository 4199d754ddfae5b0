"""Writes rules as the YAML that Prometheus and the Prometheus Operator read."""

import yaml
from alerts import Alert

RUNBOOKS = "docs/runbooks"
"""The folder of the runbooks in the repository."""

RUNBOOKS_URL = "{{ $externalURL }}/user/runbooks"
"""The URL to which alerts link by default: that of the Prometheus that evaluates the
alert, which serves docs/ with --web.user-assets."""


def recording_group(rules: dict[str, str]) -> dict:
    entries = [{"record": name, "expr": expr} for name, expr in rules.items()]
    return {"name": "pando.recorded", "rules": entries}


def alert_group(alerts: list[Alert], runbooks: str) -> dict:
    """Returns the group of alerts. `runbooks` is the URL with which each alert's link
    begins."""
    entries = [_entry(alert, runbooks) for alert in alerts]
    return {"name": "pando.alerts", "rules": entries}


def rule_file(group: dict) -> str:
    return _yaml({"groups": [group]})


def prometheus_rule(groups: list[dict]) -> str:
    return _yaml(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": "pandod"},
            "spec": {"groups": groups},
        }
    )


def runbook_index(alerts: list[Alert]) -> str:
    rows = [
        f"| [{alert.name}]({alert.name}.md) | {alert.severity} | {alert.summary} |"
        for alert in alerts
    ]
    return "\n".join([_INDEX_HEAD, *rows, ""])


_INDEX_HEAD = """\
# Runbooks

One page for each alert of `deploy/monitoring/rules/alerts.yaml`: what it means, how to
find the cause, what to do. `tools/monitoring/generate.py` writes this list.

| alert | severity | what it says |
|---|---|---|"""


def _entry(alert: Alert, runbooks: str) -> dict:
    return {
        "alert": alert.name,
        "expr": f"{alert.value}\n{alert.condition}",
        "for": alert.lasts,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": f"{runbooks.rstrip('/')}/{alert.name}.md",
        },
    }


def _yaml(content: dict) -> str:
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=200)
    return f"# Written by tools/monitoring/generate.py.\n{text}"


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that writes texts of several lines as block scalars."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
