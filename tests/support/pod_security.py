"""Pod Security's profile "restricted", and the rules that Pando adds to it."""

from collections.abc import Iterator

from manifests import containers

VOLUMES = {"configMap", "emptyDir", "ephemeral", "persistentVolumeClaim", "secret"}


def violations(pod: dict) -> list[str]:
    """Returns, in words, the parts of a pod's specification that are refused."""
    return [*_of_pod(pod), *(v for c in containers(pod) for v in _of_container(pod, c))]


def _of_pod(pod: dict) -> Iterator[str]:
    for key in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
        if pod.get(key):
            yield key
    if pod.get("automountServiceAccountToken") is not False:
        yield "automountServiceAccountToken"
    security = pod.get("securityContext", {})
    if not security.get("runAsUser"):
        yield "runAsUser"
    if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "seccompProfile"
    if security.get("runAsNonRoot") is not True:
        yield "runAsNonRoot"
    if security.get("sysctls"):
        yield "sysctls"
    for volume in pod.get("volumes", []):
        if not VOLUMES & set(volume):
            yield f"volume {volume['name']}"


def _of_container(pod: dict, container: dict) -> Iterator[str]:
    name = container["name"]
    expected = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # The whole context is compared, so no other field can undo the pod's settings.
    if container.get("securityContext") != expected:
        yield f"securityContext of {name}"
    if any("hostPort" in port for port in container.get("ports", [])):
        yield f"hostPort of {name}"
    if "memory" not in container["resources"].get("limits", {}):
        yield f"{name} has no limit of memory"
    writable = [
        mount["mountPath"]
        for mount in container.get("volumeMounts", [])
        if not mount.get("readOnly")
    ]
    volumes = {v["name"]: v for v in pod.get("volumes", [])}
    for mount in container.get("volumeMounts", []):
        volume = volumes.get(mount["name"], {})
        if {"configMap", "secret"} & set(volume) and mount["mountPath"] in writable:
            yield f"{name} may write to {mount['mountPath']}"
        if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]:
            yield f"volume {mount['name']} has no limit"
