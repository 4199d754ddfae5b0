"""The monitoring component, whose rules and dashboards are those outside Kubernetes."""

import re
import shutil

import pytest
import yaml
from dashboards import DASHBOARDS, MONITORING
from manifests import (
    DEPLOY,
    KUBERNETES,
    kustomize,
    listed,
    load,
    of_kind,
    plain_files,
    pod_of,
    sidecar,
    workloads,
)

COMPONENT = KUBERNETES / "components" / "monitoring"
# kubectl apply copies an object into an annotation, which may have 256 KiB.
LIMIT_BYTES = 256 * 1024


@pytest.fixture(scope="module")
def workload() -> dict:
    (only,) = workloads(plain_files()["base"])
    return only


def test_the_pod_monitor_selects_the_pods_and_scrapes_a_port_of_pandod(workload):
    (monitor,) = load(COMPONENT / "podmonitor.yaml")
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = sidecar(pod_of(workload))["ports"]
    assert {"containerPort": endpoint["portNumber"]} in ports
    assert endpoint["path"] == "/metrics"
    # The alerts select the job by this word in its name.
    assert "pando" in monitor["metadata"]["name"]


def test_the_rules_are_those_that_are_shipped_for_prometheus():
    (rule,) = load(COMPONENT / "prometheusrule.yaml")
    shipped = [
        group
        for name in ("recorded.yaml", "alerts.yaml")
        for group in yaml.safe_load((MONITORING / "rules" / name).read_text())["groups"]
    ]
    assert rule["spec"] == {"groups": shipped}


def test_every_dashboard_is_a_config_map_that_grafana_finds():
    folder = MONITORING / "grafana" / "dashboards"
    kustomization = folder / "kustomization.yaml"
    assert {path.stem for path in listed(kustomization)} == set(DASHBOARDS)
    (content,) = load(kustomization)
    assert content["generatorOptions"]["labels"] == {"grafana_dashboard": "1"}
    for path in folder.glob("*.json"):
        assert path.stat().st_size < LIMIT_BYTES


def test_the_overlay_in_the_documentation_has_it_all_in_its_namespace(tmp_path):
    shutil.copytree(DEPLOY, tmp_path / "pando" / "deploy")
    mine = tmp_path / "mine"
    mine.mkdir()
    page = (DEPLOY.parent / "docs" / "kubernetes.md").read_text()
    (example,) = re.findall(r"```yaml\n(apiVersion: kustomize.*?)```", page, re.DOTALL)
    (mine / "kustomization.yaml").write_text(example)
    shutil.copy(KUBERNETES / "base" / "pandod.yaml", mine)
    documents = kustomize(mine)
    kinds = {document["kind"] for document in documents}
    assert {"PodMonitor", "PrometheusRule", "Deployment", "NetworkPolicy"} <= kinds
    dashboards = [
        name
        for document in of_kind(documents, "ConfigMap")
        for name in document["data"]
        if name.endswith(".json")
    ]
    assert len(dashboards) == len(DASHBOARDS)
    for document in documents:
        if document["kind"] != "Namespace":
            assert document["metadata"]["namespace"] == "llm"
