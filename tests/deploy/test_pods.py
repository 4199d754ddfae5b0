"""The pods, checked in the manifests' files and as kubectl renders them."""

import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml
from manifests import (
    KUBERNETES,
    OVERLAYS,
    containers,
    environment,
    load,
    machines,
    of_kind,
    plain_files,
    pod_of,
    rendered,
    sidecar,
    spoken,
    workloads,
)
from pandod_process import binary, clean_environment
from pod_security import violations

CONFIG = "pandod.yaml"
EVENTS = ("kv-events", "kv-events-replay")
# Overlays whose pool may have tiers by means of the component mover.
ON_GPUS = ("fleet", "generic", "sglang", "single-gpu", "vllm")
DEFAULTS = {"drain-timeout": "25s", "http": "127.0.0.1:9464"}


@pytest.fixture(
    params=[
        *plain_files(),
        *(f"rendered {name}" for name in OVERLAYS if name != "node"),
        *(f"with-mover {name}" for name in ON_GPUS),
        *(f"with-weights {name}" for name in ("fleet", "sglang", "vllm")),
    ]
)
def documents(request) -> list[dict]:
    kind, _, overlay = request.param.partition(" ")
    if kind == "rendered":
        return rendered(overlay)
    if kind.startswith("with-"):
        return rendered(overlay, kind.removeprefix("with-"))
    return [*plain_files()[kind], generated_config(KUBERNETES / kind)]


def generated_config(folder: Path) -> dict:
    """Returns the ConfigMap that the folder's kustomization makes."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    (generator,) = kustomization["configMapGenerator"]
    return {
        "kind": "ConfigMap",
        "metadata": {"name": generator["name"]},
        "data": {name: (folder / name).read_text() for name in generator["files"]},
    }


@pytest.fixture
def pod(documents) -> dict:
    (only,) = machines(documents)
    return pod_of(only)


@pytest.fixture
def config_text(documents) -> str:
    (only,) = [
        document["data"][CONFIG]
        for document in of_kind(documents, "ConfigMap")
        if CONFIG in document["data"]
    ]
    return only


@pytest.fixture
def config(config_text) -> dict:
    return DEFAULTS | yaml.safe_load(config_text)


def seconds(text: str) -> int:
    return int(re.fullmatch(r"(\d+)s", text).group(1))


def event_ports(config: dict) -> set[int]:
    """Returns the ports of the routers' events and replays: two for each worker."""
    workers = len(config.get("kv-events-workers", "one").split(","))
    endpoints = [config[key] for key in config if key in EVENTS]
    return {
        int(endpoint.rpartition(":")[2]) + worker
        for endpoint in endpoints
        for worker in range(workers)
    }


def mounts(container: dict) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def test_pod_security_restricted_admits_it(pod, documents):
    assert violations(pod) == []
    for namespace in of_kind(documents, "Namespace"):
        labels = namespace["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_pandod_is_a_sidecar_that_serves_before_the_engines_start(pod):
    pandod = sidecar(pod)
    assert pandod["name"] == "pandod"
    assert pandod["restartPolicy"] == "Always"
    assert "startupProbe" in pandod
    assert len(pod["containers"]) > 1


def test_images_have_a_version(pod):
    for container in containers(pod):
        name, _, tag = container["image"].rpartition(":")
        assert name
        assert re.fullmatch(r"\d+\.\d+\.\d+", tag)


def test_pandod_accepts_its_configuration(tmp_path, config_text):
    path = tmp_path / CONFIG
    path.write_text(config_text)
    subprocess.run(
        [binary(), "--config", path, "--print-config"],
        env=clean_environment(),
        check=True,
    )


def test_the_entry_point_of_the_image_starts_pandod(pod):
    assert "command" not in sidecar(pod)


def test_pandod_reads_the_file_that_is_mounted(pod, documents):
    pandod = sidecar(pod)
    (argument,) = pandod["args"]
    path = Path(argument.removeprefix("--config="))
    volume = mounts(pandod)[str(path.parent)]
    (source,) = [v["configMap"]["name"] for v in pod["volumes"] if v["name"] == volume]
    (config_map,) = [
        document
        for document in of_kind(documents, "ConfigMap")
        if document["metadata"]["name"] == source
    ]
    assert path.name in config_map["data"]


def test_pandod_gets_no_variable_that_it_would_take_for_an_option(pod):
    assert not [name for name in environment(sidecar(pod)) if name.startswith("PANDO_")]


def test_probes_ask_pandod_where_it_listens(pod, config):
    pandod = sidecar(pod)
    host, _, port = config["http"].rpartition(":")
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = pandod.get(kind, {})
        if "exec" in probe:
            program, address, verb, *rest = probe["exec"]["command"]
            assert (program, verb) == ("/usr/bin/pandoctl", "health")
            assert address == f"--address=unix:{config['socket']}"
            assert rest in ([], ["--service=liveness"])
        elif probe:
            # The kubelet probes the address of the pod, so loopback would not do.
            assert host == "0.0.0.0"
            assert probe["httpGet"] in (
                {"path": path, "port": int(port)} for path in ("/readyz", "/healthz")
            )


def test_ports_are_numbers_that_are_declared(pod, config):
    taken = [p["containerPort"] for c in containers(pod) for p in c.get("ports", [])]
    assert len(taken) == len(set(taken))
    for container in containers(pod):
        own = {port["containerPort"] for port in container.get("ports", [])}
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            if "httpGet" in container.get(kind, {}):
                assert container[kind]["httpGet"]["port"] in own
    declared = {port["containerPort"] for port in sidecar(pod).get("ports", [])}
    host, _, port = config["http"].rpartition(":")
    assert declared == ({int(port)} if host == "0.0.0.0" else set()) | event_ports(
        config
    )


def test_engines_find_the_sockets_in_a_folder_that_all_containers_share(pod, config):
    folder = str(Path(config["socket"]).parent)
    (volume,) = {mounts(container)[folder] for container in containers(pod)}
    assert "emptyDir" in next(v for v in pod["volumes"] if v["name"] == volume)
    for engine in pod["containers"]:
        address = environment(engine).get("PANDO_ADDRESS") or spoken(engine)[0]
        assert address == f"unix:{config['socket']}"


def test_whoever_runs_as_the_group_of_the_folder_may_connect(pod):
    security = pod["securityContext"]
    assert security["runAsGroup"] == security["fsGroup"]


def test_volumes_that_are_mounted_are_there_and_those_there_are_mounted(pod):
    mounted = {m["name"] for c in containers(pod) for m in c["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_all_containers_share_one_gpu_if_pandod_has_one(pod, config, documents):
    on_gpu = config["pool"]["memory"] == "cuda"
    claims = [claim["name"] for claim in pod.get("resourceClaims", [])]
    slices = {
        container["resources"]["limits"].get("nvidia.com/gpu")
        for container in containers(pod)
    }
    asked = [container["resources"].get("claims", []) for container in containers(pod)]
    assert all(names == [{"name": name} for name in claims] for names in asked)
    assert (bool(claims), slices) in (
        ((True, {None}), (False, {1})) if on_gpu else ((False, {None}),)
    )
    templates = {
        document["metadata"]["name"]
        for document in of_kind(documents, "ResourceClaimTemplate")
    }
    named = {c["resourceClaimTemplateName"] for c in pod.get("resourceClaims", [])}
    assert named == templates


def test_the_grace_is_longer_than_pandod_drains(pod, config):
    assert pod["terminationGracePeriodSeconds"] > seconds(config["drain-timeout"])


def test_the_network_lets_in_scrapes_and_requests_alone(pod, config, documents):
    (workload,) = machines(documents)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    policies = {p["metadata"]["name"]: p for p in of_kind(documents, "NetworkPolicy")}
    for policy in policies.values():
        assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    for name in policies.keys() - {"router", "valkey"}:
        policy = policies[name]
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
        scrapes, requests, *events = policy["spec"]["ingress"]
        assert [p["port"] for e in events for p in e["ports"]] == sorted(
            event_ports(config)
        )
        for peer in (peer for entry in events for peer in entry["from"]):
            (router,) = [w for w in workloads(documents) if w is not workload]
            own = router["spec"]["template"]["metadata"]["labels"]
            assert peer["podSelector"]["matchLabels"].items() <= own.items()
        assert "namespaceSelector" in scrapes["from"][0]
        assert scrapes["ports"] == [{"port": int(config["http"].rpartition(":")[2])}]
        assert [port["port"] for port in requests["ports"]] == [
            port["containerPort"] for c in pod["containers"] for port in c["ports"]
        ]
    exposed = not config["http"].startswith("127.") and config["http"]
    assert bool(policies.keys() - {"valkey"}) == bool(exposed)


def test_services_name_ports_that_the_pods_have(pod, documents):
    (workload,) = machines(documents)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    declared = {p["containerPort"] for c in containers(pod) for p in c.get("ports", [])}
    for service in of_kind(documents, "Service"):
        if service["spec"]["selector"].items() <= labels.items():
            ports = {port["port"] for port in service["spec"].get("ports", [])}
            assert ports <= declared
    for budget in of_kind(documents, "PodDisruptionBudget"):
        selected = budget["spec"]["selector"]["matchLabels"]
        assert selected.items() <= labels.items()


def test_engines_have_shared_memory_of_a_limited_size(pod):
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for engine in pod["containers"]:
        name = mounts(engine).get("/dev/shm")
        if name:
            assert volumes[name]["emptyDir"]["medium"] == "Memory"


@pytest.mark.parametrize("name", ["vllm", "weights"])
def test_weights_are_kept_where_the_engines_look(name):
    documents = rendered("vllm", *([name] if name == "weights" else []))
    pod = pod_of(machines(documents)[0])
    (models,) = (v for v in pod["volumes"] if v["name"] == "models")
    kept = {"name"} ^ set(models)
    assert kept == {"persistentVolumeClaim" if name == "weights" else "emptyDir"}
    claims = {
        c["metadata"]["name"] for c in of_kind(documents, "PersistentVolumeClaim")
    }
    named = models.get("persistentVolumeClaim", {}).get("claimName")
    assert claims == ({named} if named else set())


@pytest.mark.parametrize("overlay", [name for name in OVERLAYS if name != "node"])
def test_the_cluster_may_choose_the_user(overlay):
    for workload in workloads(rendered(overlay, "cluster-uid")):
        pod = pod_of(workload)
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(pod["securityContext"])
        # The other demands of the profile still hold.
        assert violations(pod) == ["runAsUser"]


def test_one_component_names_all_images_of_pando():
    used = {
        container["image"].rpartition(":")[0]
        for overlay in OVERLAYS
        for workload in workloads(rendered(overlay))
        for container in containers(pod_of(workload))
    }
    path = KUBERNETES / "components/images/kustomization.yaml"
    named = {image["name"] for image in yaml.safe_load(path.read_text())["images"]}
    assert named == {name for name in used if "registry.example.com/" in name}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_is_rendered_is_as_the_schemas_of_kubernetes_say(overlay):
    for document in rendered(overlay):
        kubernetes_validate.validate(
            document, kubernetes_validate.latest_version(), strict=True
        )


def test_the_router_of_the_fleet_knows_every_engine_and_its_events():
    fleet = KUBERNETES / "overlays/fleet"
    documents = load(fleet / "router.yaml")
    (router,) = workloads(documents)
    assert violations(pod_of(router)) == []
    (container,) = pod_of(router)["containers"]
    values: dict[str, list[str]] = {}
    for argument in container["args"]:
        if argument.startswith("--"):
            name, _, value = argument.partition("=")
            values.setdefault(name, []).extend([value] if value else [])
        else:
            values[name].append(argument)
    # The engines are those of the vLLM overlay, as a StatefulSet behind a Service.
    (engines_patch,) = load(KUBERNETES / "overlays/vllm/engines.yaml")
    machine = {
        change["path"]: change["value"]
        for change in yaml.safe_load((fleet / "statefulset.yaml").read_text())
        if change["op"] != "remove"
    }
    (service,) = load(fleet / "machines.yaml")
    assert machine["/spec/serviceName"] == service["metadata"]["name"]
    names = [
        f"{engines_patch['metadata']['name']}-{i}.{service['metadata']['name']}"
        for i in range(machine["/spec/replicas"])
    ]
    engines = [
        int(environment(container)["PORT"])
        for container in pod_of(engines_patch)["containers"]
    ]
    assert values["--worker-urls"] == [
        f"http://{n}:{p}" for n in names for p in engines
    ]
    config = yaml.safe_load((fleet / CONFIG).read_text())
    for flag, option in (
        ("--kv-event-source", "kv-events"),
        ("--kv-event-replay-source", "kv-events-replay"),
    ):
        first = int(config[option].rpartition(":")[2])
        assert values[flag] == [
            f"http://{name}:{port}=tcp://{name}:{first + i}"
            for name in names
            for i, port in enumerate(engines)
        ]
    assert values["--kv-event-block-size"] == [str(config["page-tokens"])]
    assert values["--kv-event-model"] == [config["model"]]
    egress = {
        port["port"]
        for policy in of_kind(documents, "NetworkPolicy")
        for port in policy["spec"]["egress"][0]["ports"]
    }
    assert egress == {*engines, *event_ports(config)}


@pytest.mark.parametrize(
    "several, one, own",
    [
        ("overlays/fleet", "base", {"kv-events", "page-tokens", "model"}),
        ("overlays/tiers", "overlays/cpu-demo", {"tier", "model"}),
    ],
)
def test_the_pool_of_several_machines_is_that_of_one(several, one, own):
    options = yaml.safe_load((KUBERNETES / several / CONFIG).read_text())
    shared = {k: v for k, v in options.items() if not k.startswith(tuple(own))}
    assert shared == yaml.safe_load((KUBERNETES / one / CONFIG).read_text())


def test_the_store_of_the_tiers_is_asked_by_the_machines_alone():
    tiers = KUBERNETES / "overlays/tiers"
    documents = load(tiers / "valkey.yaml")
    (store,), (service,), (policy,) = (
        of_kind(documents, kind) for kind in ("Deployment", "Service", "NetworkPolicy")
    )
    assert violations(pod_of(store)) == []
    labels = store["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    (port,) = (
        p["containerPort"] for c in containers(pod_of(store)) for p in c["ports"]
    )
    (asked,) = policy["spec"]["ingress"]
    (machine,) = machines(plain_files()["overlays/cpu-demo"])
    assert asked["from"][0]["podSelector"]["matchLabels"].items() <= (
        machine["spec"]["template"]["metadata"]["labels"].items()
    )
    assert asked["ports"] == [{"port": port}]
    config = yaml.safe_load((tiers / CONFIG).read_text())
    name = service["metadata"]["name"]
    asked_at = urlsplit(config["tier"]["shared"])
    assert (asked_at.scheme, asked_at.netloc) == ("redis", f"{name}:{port}")
