"""Pod Security *restricted*, from the published standard: what it refuses of a pod spec.

https://kubernetes.io/docs/concepts/security/pod-security-standards/ (Kubernetes 1.34). Written here
from its text, so that no manifest is checked by what made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_PROFILES = {"RuntimeDefault", "Localhost"}
_LISTS = ("initContainers", "containers", "ephemeralContainers")
_HANDLERS = ("startupProbe", "livenessProbe", "readinessProbe")


def pods_of(manifest: Json) -> Iterator[tuple[str, Json]]:
    """Each pod that comes of the object, as a pod spec, and where it is written."""
    kind, spec = manifest["kind"], manifest.get("spec", {})
    if kind == "Deployment":
        yield "template", spec["template"]["spec"]
    elif kind == "InferenceService":
        yield from _of_inference_service(spec)
    elif kind == "LLMInferenceService":
        yield from ((name, spec[name]) for name in ("template", "worker") if name in spec)
    elif kind == "ServingRuntime":
        yield "spec", spec


def _of_inference_service(spec: Json) -> Iterator[tuple[str, Json]]:
    predictor = spec["predictor"]
    containers = [{"name": "kserve-container", **predictor["model"]}]
    yield "predictor", {**predictor, "containers": containers}
    if "workerSpec" in predictor:
        yield "workerSpec", predictor["workerSpec"]


def violations(pod: Json) -> list[str]:
    """Empty when a namespace that enforces *restricted* takes the pod."""
    return [
        *_of_pod(pod),
        *(fault for container in containers_of(pod) for fault in _of_container(pod, container)),
    ]


def containers_of(pod: Json) -> list[Json]:
    return [one for name in _LISTS for one in pod.get(name, ())]


def _of_pod(pod: Json) -> Iterator[str]:
    context = pod.get("securityContext", {})
    profile = context.get("seccompProfile", {}).get("type", "RuntimeDefault")
    rules = {
        **{f"{name} is set": pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")},
        "sysctls are set": context.get("sysctls"),
        "the pod runs as root": context.get("runAsUser") == 0,
        "SELinux is changed": context.get("seLinuxOptions"),
        "AppArmor is changed": context.get("appArmorProfile"),
        "the pod's seccomp profile is not allowed": profile not in _PROFILES,
    }
    yield from _broken(rules)
    for volume in pod.get("volumes", ()):
        kinds = set(volume) - {"name"}
        if not kinds <= _VOLUMES:
            yield f"volume {volume['name']} is {sorted(kinds)}"


def _of_container(pod: Json, container: Json) -> Iterator[str]:
    name, context = container["name"], container.get("securityContext", {})
    outer = pod.get("securityContext", {})
    profile = context.get("seccompProfile", outer.get("seccompProfile", {})).get("type")
    capabilities = context.get("capabilities", {})
    yield from _broken(
        {
            f"{name} is privileged": context.get("privileged"),
            f"{name} may escalate privileges": context.get("allowPrivilegeEscalation") is not False,
            f"{name} may run as root": not context.get("runAsNonRoot", outer.get("runAsNonRoot")),
            f"{name} runs as root": context.get("runAsUser") == 0,
            f"{name} has no seccomp profile": profile not in _PROFILES,
            f"{name} keeps capabilities": "ALL" not in capabilities.get("drop", ()),
            f"{name} adds capabilities": set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"},
            f"{name} mounts /proc": context.get("procMount", "Default") != "Default",
            f"{name} takes a port of the node": _has_host_port(container),
            f"{name} probes another host": _probes_a_host(container),
        }
    )


def _broken(rules: Mapping[str, Any]) -> list[str]:
    return [fault for fault, is_broken in rules.items() if is_broken]


def _has_host_port(container: Json) -> bool:
    return any(port.get("hostPort") for port in container.get("ports", ()))


def _probes_a_host(container: Json) -> bool:
    handlers = [container[handler] for handler in _HANDLERS if handler in container]
    handlers += container.get("lifecycle", {}).values()
    return any(
        handler.get(kind, {}).get("host")
        for handler in handlers
        for kind in ("httpGet", "tcpSocket")
    )
