"""One pandod per node: the overlay as kubectl renders it, and the chart."""

import subprocess
from pathlib import Path
from types import ModuleType

import kubernetes_validate
import pytest
import yaml
from blocks import BLOCKS_ONLY
from manifests import (
    DEPLOY,
    containers,
    environment,
    of_kind,
    pod_of,
    rendered,
    workloads,
)
from pandod_process import binary, clean_environment, serving
from users import needs_root, open_folder

OLDEST = "1.34"
ENGINES = 65532
# Helm's severity of a warning.
WARNING = 2


CHART = DEPLOY / "helm" / "pando"
# The choices that values.yaml offers.
CHOICES = {
    "chart": {},
    "chart-monitored": {"podMonitor": True, "scrapedFrom": ""},
    "chart-anywhere": {"nodeSelector": None, "tolerations": None},
    "chart-elsewhere": {
        "options": {
            "socket": "/var/lib/pando/own.sock",
            "socket-group": "1000",
            "http": "0.0.0.0:8080",
            "block-extent": "33554432",
        }
    },
}


def helm() -> ModuleType:
    return pytest.importorskip("helm_python", reason="no wheel has Helm here")


def charted(choice: str) -> list[dict]:
    """Returns the objects that Helm makes of the chart."""
    rendering = helm().Chart.load(CHART).render(CHOICES[choice], name="pando")
    return [d for text in rendering.values() for d in yaml.safe_load_all(text)]


@pytest.fixture(params=["overlay", *CHOICES])
def documents(request) -> list[dict]:
    return rendered("node") if request.param == "overlay" else charted(request.param)


@pytest.fixture
def overlay() -> list[dict]:
    return rendered("node")


def only(documents: list[dict], kind: str) -> dict:
    (document,) = of_kind(documents, kind)
    return document


def options(documents: list[dict]) -> dict:
    return yaml.safe_load(only(documents, "ConfigMap")["data"]["pandod.yaml"])


def as_text(stated: dict) -> str:
    """Returns the options as a file for pandod, with yes and no as booleans."""
    said = {True: "yes", False: "no"}
    return "".join(
        f"{key}: {said[value] if isinstance(value, bool) else value}\n"
        for key, value in stated.items()
    )


def folders_of_node(pod: dict) -> dict[str, str]:
    """Returns the folders of the node that a pod mounts, by the volumes' names."""
    return {v["name"]: v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v}


def test_it_is_as_the_schemas_of_kubernetes_say(documents):
    known = [d for d in documents if d["kind"] != "PodMonitor"]
    for version in (OLDEST, kubernetes_validate.latest_version()):
        for document in known:
            kubernetes_validate.validate(document, version, strict=True)


def test_pandod_may_do_nothing_but_write_to_the_folder_of_the_sockets(documents):
    pod = pod_of(only(documents, "DaemonSet"))
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    (container,) = containers(pod)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    folder = str(Path(options(documents)["socket"]).parent)
    assert list(folders_of_node(pod).values()) == [folder]


def test_the_entry_point_of_the_image_starts_pandod(documents):
    (container,) = containers(pod_of(only(documents, "DaemonSet")))
    assert "command" not in container


def test_engines_mount_the_folder_of_the_sockets_to_read(overlay):
    pandod = pod_of(only(overlay, "DaemonSet"))
    pod = pod_of(only(overlay, "Deployment"))
    assert folders_of_node(pod) == folders_of_node(pandod)
    (engine,) = containers(pod)
    for name in folders_of_node(pod):
        (mount,) = (m for m in engine["volumeMounts"] if m["name"] == name)
        assert mount["readOnly"]
    socket = options(overlay)["socket"]
    assert environment(engine)["PANDO_ADDRESS"] == f"unix:{socket}"
    group = pod["securityContext"]["runAsGroup"]
    assert str(group) == options(overlay)["socket-group"]
    assert pandod["securityContext"]["runAsGroup"] == group


def test_the_memory_fits_the_containers(documents):
    memory = int(options(documents)["memory"].removesuffix("GiB"))
    for workload in workloads(documents):
        (container,) = containers(pod_of(workload))
        limit = container["resources"]["limits"]["memory"]
        assert int(limit.removesuffix("Gi")) > memory


def test_pandod_is_asked_where_it_listens(documents):
    stated = options(documents)
    (container,) = containers(pod_of(only(documents, "DaemonSet")))
    port = int(stated["http"].rpartition(":")[2])
    assert container["ports"] == [{"containerPort": port}]
    assert container["readinessProbe"]["httpGet"]["port"] == port
    asked = container["livenessProbe"]["exec"]["command"]
    assert f"--address=unix:{stated['socket']}" in asked
    for policy in of_kind(documents, "NetworkPolicy"):
        if policy["metadata"]["name"] == "pandod":
            (scrapes,) = policy["spec"]["ingress"]
            assert scrapes["ports"] == [{"port": port}]
    for monitor in of_kind(documents, "PodMonitor"):
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["portNumber"] == port


def test_the_chart_is_the_overlay(overlay):
    by_hand, charted_ = (
        pod_of(only(documents, "DaemonSet"))
        for documents in (overlay, charted("chart"))
    )
    (config,) = (v for v in by_hand["volumes"] if "configMap" in v)
    # kustomize appends a hash of the content to the name.
    config["configMap"]["name"] = "pandod"
    assert charted_ == by_hand
    assert options(charted("chart")) == options(overlay) | {"console": "no"}


def test_helm_finds_nothing_wrong():
    report = helm().lint(CHART, strict=True)
    assert not report["errors"]
    assert all(message["severity"] < WARNING for message in report["messages"])


def test_pandod_accepts_its_options(documents, tmp_path):
    # The test replaces the folder and the memory by ones that this machine has.
    here = {"socket": str(tmp_path / "pando.sock"), "memory": "64MiB"}
    path = tmp_path / "pandod.yaml"
    path.write_text(as_text(options(documents) | here))
    given = [binary(), "--config", path]
    environment = clean_environment()
    subprocess.run([*given, "--check-config"], env=environment, check=True)
    path.write_text(only(documents, "ConfigMap")["data"]["pandod.yaml"])
    subprocess.run([*given, "--print-config"], env=environment, check=True)


@needs_root
def test_engines_reach_a_root_without_capabilities_and_cannot_replace_its_socket(
    monkeypatch, tmp_path
):
    programs = binary().parent
    script = tmp_path / "pandod"
    rights = f"--regid {ENGINES} --clear-groups --bounding-set -all --inh-caps -all"
    script.write_text(f'#!/bin/sh\nexec setpriv {rights} {binary()} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PANDOD", str(script))
    user = ["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups"]
    with (
        open_folder() as folder,
        serving(folder, socket_group=ENGINES, **BLOCKS_ONLY) as pandod,
    ):
        ask = [programs / "pandoctl", "--address", pandod.address, "health"]
        subprocess.run([*user, *ask], check=True)
        assert subprocess.run([*user, "rm", pandod.socket], check=False).returncode
        assert pandod.socket.exists()
