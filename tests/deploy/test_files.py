"""The files of deploy/, which must be well-formed, complete and used."""

import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from manifests import (
    DEPLOY,
    KUBERNETES,
    KUSTOMIZATIONS,
    OVERLAYS,
    containers,
    listed,
    load,
    of_kind,
    own_files,
    plain_files,
    pod_of,
    workloads,
)

HERE = Path(__file__).parent
# The oldest Kubernetes with the features that each folder needs: DRA, or sidecars.
OLDEST = {
    "base": "1.34",
    "overlays/cpu-demo": "1.29",
    "overlays/fleet": "1.34",
    "overlays/node": "1.34",
    "overlays/tiers": "1.29",
}
# The patches that look like the object they change. All others list operations.
PATCHES = sorted(
    kustomization.parent / patch["path"]
    for kustomization in KUSTOMIZATIONS
    for patch in yaml.safe_load(kustomization.read_text()).get("patches", [])
    if "target" not in patch
)


def in_deploy(path: Path) -> str:
    return str(path.relative_to(DEPLOY))


each_kustomization = pytest.mark.parametrize(
    "kustomization", KUSTOMIZATIONS, ids=in_deploy
)


def test_yamllint_finds_nothing():
    config = HERE / "yamllint.yaml"
    subprocess.run(
        [sys.executable, "-m", "yamllint", "--strict", "-c", config, DEPLOY], check=True
    )


@pytest.mark.parametrize("folder", OLDEST)
def test_manifests_are_as_the_schemas_of_kubernetes_say(folder):
    for version in (OLDEST[folder], kubernetes_validate.latest_version()):
        for document in own_files(folder):
            kubernetes_validate.validate(document, version, strict=True)


@each_kustomization
def test_what_a_kustomization_names_is_there(kustomization):
    for path in listed(kustomization):
        assert path.is_file() or (path / "kustomization.yaml").is_file(), path


def test_every_file_is_named_by_a_kustomization():
    named = {path for kustomization in KUSTOMIZATIONS for path in listed(kustomization)}
    files = set(KUBERNETES.rglob("*.yaml")) - set(KUSTOMIZATIONS)
    assert files - named == set()


def test_every_component_is_used_by_an_overlay_or_by_the_documentation():
    named = {path for kustomization in KUSTOMIZATIONS for path in listed(kustomization)}
    text = (DEPLOY.parent / "docs" / "kubernetes.md").read_text()
    for folder in (KUBERNETES / "components").iterdir():
        assert folder in named or f"components/{folder.name}" in text
    for overlay in OVERLAYS:
        assert f"overlays/{overlay}" in text


@each_kustomization
def test_images_that_are_set_are_in_the_manifests(kustomization):
    images = yaml.safe_load(kustomization.read_text()).get("images", [])
    used = {
        container["image"].rpartition(":")[0]
        for folder in OLDEST
        for workload in workloads(own_files(folder))
        for container in containers(pod_of(workload))
    }
    used |= {
        image["newName"]
        for other in KUSTOMIZATIONS
        for image in yaml.safe_load(other.read_text()).get("images", [])
        if "newName" in image
    }
    for image in images:
        assert image["name"] in used
        assert re.fullmatch(r"\d+\.\d+\.\d+", image["newTag"])


@pytest.mark.parametrize("path", PATCHES, ids=in_deploy)
def test_patches_change_what_is_there_and_not_its_rights(path):
    (patch,) = load(path)
    (target,) = [
        document
        for documents in plain_files().values()
        for document in of_kind(documents, patch["kind"])
        if document["metadata"]["name"] == patch["metadata"]["name"]
    ]
    assert patch["apiVersion"] == target["apiVersion"]
    for workload in workloads([patch]):
        pod, known = pod_of(workload), {c["name"] for c in containers(pod_of(target))}
        assert set(pod) <= {"resourceClaims", "initContainers", "containers", "volumes"}
        for container in containers(pod):
            assert container["name"] in known
            assert "securityContext" not in container
