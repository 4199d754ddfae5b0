"""Writes the dashboards, rules and alerts of deploy/, for Kubernetes as well.

usage: generate.py [--check] [--runbooks URL] PANDOD

Everything is made from the metrics that pandod prints, so a query of a metric that
pandod lacks is an error. --check writes nothing, and fails when a file differs.
--runbooks is the URL at which the pages of docs/runbooks are served; each alert's
runbook_url begins with it. The default is the URL of the Prometheus that evaluates the
alerts, which serves docs/ with --web.user-assets.
"""

import argparse
import json
import sys
from pathlib import Path

from alerts import alerts
from catalogue import Catalogue, read_catalogue
from dashboard import dashboard_json, dashboard_queries
from dashboards.blocks import blocks
from dashboards.calls import calls
from dashboards.eviction import eviction
from dashboards.fleet import fleet
from dashboards.overview import overview
from dashboards.sessions import sessions
from recording_rules import recording_rules
from rule_files import (
    RUNBOOKS,
    RUNBOOKS_URL,
    alert_group,
    prometheus_rule,
    recording_group,
    rule_file,
    runbook_index,
)

REPOSITORY = Path(__file__).resolve().parents[2]
MONITORING = REPOSITORY / "deploy" / "monitoring"
RULES = MONITORING / "rules"
KUBERNETES = REPOSITORY / "deploy" / "kubernetes" / "components" / "monitoring"


def files(catalogue: Catalogue, runbooks: str) -> dict[Path, str]:
    all_alerts = alerts(catalogue)
    recorded = recording_group(recording_rules(catalogue))
    alerting = alert_group(all_alerts, runbooks)
    texts = {
        RULES / "recorded.yaml": rule_file(recorded),
        RULES / "alerts.yaml": rule_file(alerting),
        KUBERNETES / "prometheusrule.yaml": prometheus_rule([recorded, alerting]),
        REPOSITORY / RUNBOOKS / "README.md": runbook_index(all_alerts),
    }
    queries = dashboard_queries(catalogue)
    for make in (overview, eviction, blocks, sessions, calls, fleet):
        dashboard = make(queries)
        path = MONITORING / "grafana" / "dashboards" / f"{dashboard.uid}.json"
        content = dashboard_json(dashboard, catalogue)
        texts[path] = json.dumps(content, indent=2) + "\n"
    return texts


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runbooks", default=RUNBOOKS_URL, metavar="URL")
    parser.add_argument("pandod", type=Path)
    arguments = parser.parse_args()
    wrong = 0
    catalogue = read_catalogue(arguments.pandod)
    for path, text in files(catalogue, arguments.runbooks).items():
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path} is not what tools/monitoring/generate.py writes; run it")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
