"""The component that runs a pando-mover beside pandod, as its files say."""

import pytest
from manifests import (
    KUBERNETES,
    containers,
    load,
    plain_files,
    pod_of,
    rendered,
    sidecar,
    spoken,
    workloads,
)
from pod_security import violations

COMPONENT = KUBERNETES / "components" / "mover"


@pytest.fixture
def pod() -> dict:
    """Returns the pod of base with the container that the component adds."""
    (workload,) = workloads(plain_files()["base"])
    pod = pod_of(workload)
    (operation,) = load(COMPONENT / "container.yaml")[0]
    assert operation["op"] == "add"
    assert operation["path"] == "/spec/template/spec/initContainers/-"
    resources = sidecar(pod)["resources"]
    added = operation["value"] | {"resources": resources}
    return pod | {"initContainers": [*pod["initContainers"], added]}


def test_pod_security_restricted_admits_it(pod):
    assert violations(pod) == []


def test_it_outlives_the_engines_and_is_of_the_image_of_pandod(pod):
    pandod, mover = pod["initContainers"]
    assert mover["restartPolicy"] == "Always"
    assert mover["image"] == pandod["image"]
    assert spoken(mover)[0] == "/usr/bin/pando-mover"


def test_it_is_told_the_socket_that_pandod_opens_if_it_is_told_of_none(pod):
    (config,) = load(KUBERNETES / "base" / "pandod.yaml")
    folder = config["socket"].rpartition("/")[0]
    assert f"--socket={folder}/mover.sock" in spoken(pod["initContainers"][1])


@pytest.mark.parametrize("overlay", ["fleet", "sglang", "single-gpu"])
def test_it_has_the_gpu_of_pandod_by_a_claim_or_a_slice(overlay):
    (pod,) = (
        pod_of(workload)
        for workload in workloads(rendered(overlay, "mover"))
        if "initContainers" in pod_of(workload)
    )
    (mover,) = (c for c in containers(pod) if c["name"] == "pando-mover")
    assert mover["resources"] == sidecar(pod)["resources"]
