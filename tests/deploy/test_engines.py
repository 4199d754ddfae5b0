"""The options of the overlays' engines, which must fit the pool and the pod."""

import re

import pytest
from manifests import KUBERNETES, load, plain_files, pod_of, spoken, workloads

(BASE,) = workloads(plain_files()["base"])
PATCHES = sorted((KUBERNETES / "overlays").glob("*/engines.yaml"))
OPTIONS = {
    "model": r"(?:--model-path=|vllm serve )(\S+)",
    "page-tokens": r"(?:--page-size=|--block-size=)(\S+)",
    "dtype": r"--dtype=(\S+)",
}

each_overlay = pytest.mark.parametrize("path", PATCHES, ids=lambda p: p.parent.name)


def engines(patch: dict) -> list[dict]:
    """Returns the containers of base, each changed as the patch says."""
    said = {container["name"]: container for container in pod_of(patch)["containers"]}
    return [
        base | (own := said[base["name"]]) | {"env": base["env"] + own.get("env", [])}
        for base in pod_of(BASE)["containers"]
    ]


def test_those_of_the_fleet_run_the_model_and_page_that_its_router_is_told():
    (patch,) = load(KUBERNETES / "overlays" / "vllm" / "engines.yaml")
    (pool,) = load(KUBERNETES / "overlays" / "fleet" / "pandod.yaml")
    for engine in engines(patch):
        line = " ".join(spoken(engine))
        for key in ("model", "page-tokens"):
            assert re.findall(OPTIONS[key], line) == [str(pool[key])]


@each_overlay
def test_they_serve_and_are_probed_on_the_port_that_they_declare(path):
    (patch,) = load(path)
    for engine in engines(patch):
        (declared,) = [port["containerPort"] for port in engine["ports"]]
        assert re.findall(r"--port=(\d+)", " ".join(spoken(engine))) == [str(declared)]
        for kind in ("startupProbe", "readinessProbe"):
            assert engine[kind]["httpGet"]["port"] == declared


@pytest.mark.parametrize("name", ["sglang", "vllm"])
def test_servers_name_model_and_layout(name):
    (patch,) = load(KUBERNETES / "overlays" / name / "engines.yaml")
    for engine in engines(patch):
        line = " ".join(spoken(engine))
        assert all(re.search(form, line) for form in OPTIONS.values())
