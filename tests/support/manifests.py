"""The manifests for Kubernetes, as their files say and as kubectl renders them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
import yaml
from pandod_process import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = sorted(path.name for path in (KUBERNETES / "overlays").iterdir())
KUSTOMIZATIONS = sorted(DEPLOY.rglob("kustomization.yaml"))
# The first kubectl with kustomize 5.
OLDEST_KUBECTL = (1, 27)


def load(path: Path) -> list[dict]:
    return list(yaml.safe_load_all(path.read_text()))


def of_kind(documents: list[dict], kind: str) -> list[dict]:
    return [document for document in documents if document["kind"] == kind]


def workloads(documents: list[dict]) -> list[dict]:
    kinds = ("DaemonSet", "Deployment", "StatefulSet", "Job")
    return [document for kind in kinds for document in of_kind(documents, kind)]


def machines(documents: list[dict]) -> list[dict]:
    """Returns the workloads that have a pandod."""
    return [w for w in workloads(documents) if "initContainers" in pod_of(w)]


def pod_of(workload: dict) -> dict:
    return workload["spec"]["template"]["spec"]


def containers(pod: dict) -> list[dict]:
    return [*pod.get("initContainers", []), *pod.get("containers", [])]


def environment(container: dict) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container.get("env", [])}


def spoken(container: dict) -> list[str]:
    """Returns the container's command line, as Kubernetes expands it."""
    values = environment(container)
    return [
        re.sub(r"\$\((\w+)\)", lambda name: values[name.group(1)], text)
        for text in container.get("command", []) + container.get("args", [])
    ]


def sidecar(pod: dict) -> dict:
    """Returns the container of pandod."""
    (only,) = (c for c in pod["initContainers"] if c["name"] == "pandod")
    return only


def listed(kustomization: Path) -> list[Path]:
    """Returns the files and folders that a kustomization names."""
    content = yaml.safe_load(kustomization.read_text())
    names = content.get("resources", []) + content.get("components", [])
    names += [patch["path"] for patch in content.get("patches", [])]
    for generator in content.get("configMapGenerator", []):
        names += generator["files"]
    return [(kustomization.parent / name).resolve() for name in names]


@cache
def own_files(name: str) -> list[dict]:
    """Returns the whole manifests among the files of a folder."""
    folder = KUBERNETES / name
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return [
        document
        for resource in kustomization["resources"]
        if (folder / resource).is_file()
        for document in load(folder / resource)
    ]


@cache
def plain_files() -> dict[str, list[dict]]:
    """Returns the manifests of the folders whose own files are a pod with a pandod and
    all that this pod needs."""
    return {name: own_files(name) for name in ("base", "overlays/cpu-demo")}


@cache
def rendered(overlay: str, *components: str) -> list[dict]:
    """Returns the objects that kubectl would apply; skips without a kubectl."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        content = {
            "resources": [f"overlays/{overlay}"],
            "components": [f"components/{component}" for component in components],
        }
        # The folder looks like an overlay that a user writes.
        text = yaml.dump(
            {
                key: [os.path.relpath(KUBERNETES / path, folder) for path in paths]
                for key, paths in content.items()
            }
        )
        (folder / "kustomization.yaml").write_text(text)
        return kustomize(folder)


def kustomize(folder: Path) -> list[dict]:
    # A kubectl beside the Python that runs the tests comes before the machine's.
    own = Path(sys.executable).parent
    kubectl = shutil.which("kubectl", path=f"{own}{os.pathsep}{os.environ['PATH']}")
    if kubectl is None:
        pytest.skip("there is no kubectl to render with")
    version = subprocess.check_output([kubectl, "version", "--client"], text=True)
    found = tuple(map(int, re.search(r"v(\d+)\.(\d+)", version).groups()))
    if found < OLDEST_KUBECTL:
        pytest.skip(f"kubectl {found} is older than {OLDEST_KUBECTL}")
    text = subprocess.check_output([kubectl, "kustomize", folder], text=True)
    return list(yaml.safe_load_all(text))
