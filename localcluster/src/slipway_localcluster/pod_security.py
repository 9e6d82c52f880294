"""Warnings of Pod Security admission, by the labels of a namespace.

Left out: audit and enforce, of the baseline standard what no server of models sets (sysctls, SELinux,
AppArmor, procMount, Windows, hosts of probes), and versions of the standard: each is the latest.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import DEPLOYMENT, JOB, POD, REPLICA_SET, Kind

_LEVEL = "pod-security.kubernetes.io/warn"
_VERSION = f"{_LEVEL}-version"
_BASELINE, _RESTRICTED = "baseline", "restricted"
_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
_DEFAULT_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_PROFILES = ("RuntimeDefault", "Localhost")


def find_warnings(kind: Kind, obj: JsonObject, namespace: JsonObject) -> list[str]:
    """Return the warnings about a pod or pod template. Empty if the namespace does not warn about it."""
    labels = namespace["metadata"].get("labels") or {}
    level = labels.get(_LEVEL)
    if level not in (_BASELINE, _RESTRICTED):
        return []
    checks = _AT_BASELINE if level == _BASELINE else _AT_RESTRICTED
    faults = [fault for check in checks for pod in _pods(kind, obj) for fault in check(pod)]
    if not faults:
        return []
    standard = f"{level}:{labels.get(_VERSION, 'latest')}"
    return [f'would violate PodSecurity "{standard}": {", ".join(faults)}']


def _pods(kind: Kind, obj: JsonObject) -> Iterator[JsonObject]:
    if kind is POD:
        yield obj.get("spec") or {}
    elif kind in (DEPLOYMENT, REPLICA_SET, JOB):
        yield ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}


def _containers(pod: JsonObject) -> list[JsonObject]:
    return [
        container
        for field in ("initContainers", "containers", "ephemeralContainers")
        for container in pod.get(field) or ()
    ]


def _context(part: JsonObject) -> JsonObject:
    return part.get("securityContext") or {}


def _names(pod: JsonObject, is_faulty: Callable[[JsonObject], Any]) -> list[str]:
    return [container["name"] for container in _containers(pod) if is_faulty(container)]


def _quoted(names: Sequence[str]) -> str:
    return '"' + '", "'.join(names) + '"'


def _counted(noun: str, names: Sequence[str]) -> str:
    return f"{noun}{'' if len(names) == 1 else 's'} {_quoted(names)}"


def _host_namespaces(pod: JsonObject) -> Iterator[str]:
    if used := [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]:
        yield f"host namespaces ({', '.join(f'{name}=true' for name in used)})"


def _host_paths(pod: JsonObject) -> Iterator[str]:
    if names := [volume["name"] for volume in pod.get("volumes") or () if "hostPath" in volume]:
        yield f"hostPath volumes ({_counted('volume', names)})"


def _host_ports(pod: JsonObject) -> Iterator[str]:
    def ports(container: JsonObject) -> list[str]:
        listed = container.get("ports") or ()
        return [str(port["hostPort"]) for port in listed if port.get("hostPort")]

    if names := _names(pod, ports):
        used = sorted({port for container in _containers(pod) for port in ports(container)})
        verb = "uses" if len(names) == 1 else "use"
        noun = "hostPort" if len(used) == 1 else "hostPorts"
        yield f"hostPort ({_counted('container', names)} {verb} {noun} {', '.join(used)})"


def _privileged(pod: JsonObject) -> Iterator[str]:
    if names := _names(pod, lambda container: _context(container).get("privileged")):
        who = _counted("container", names)
        yield f"privileged ({who} must not set securityContext.privileged=true)"


def _added(container: JsonObject, allowed: frozenset[str]) -> set[str]:
    capabilities = _context(container).get("capabilities") or {}
    return set(capabilities.get("add") or ()) - allowed


def _must_not_add(pod: JsonObject, allowed: frozenset[str]) -> list[str]:
    names = _names(pod, lambda container: _added(container, allowed))
    added = {name for container in _containers(pod) for name in _added(container, allowed)}
    where = "securityContext.capabilities.add"
    sentence = (
        f"{_counted('container', names)} must not include {_quoted(sorted(added))} in {where}"
    )
    return [sentence] if names else []


def _non_default_capabilities(pod: JsonObject) -> Iterator[str]:
    for detail in _must_not_add(pod, _DEFAULT_CAPABILITIES):
        yield f"non-default capabilities ({detail})"


def _unconfined(pod: JsonObject) -> Iterator[str]:
    yield from _seccomp(pod, refused=lambda profile: profile == "Unconfined")


def _escalation(pod: JsonObject) -> Iterator[str]:
    def may_escalate(container: JsonObject) -> bool:
        return _context(container).get("allowPrivilegeEscalation") is not False

    if names := _names(pod, may_escalate):
        who = _counted("container", names)
        detail = f"{who} must set securityContext.allowPrivilegeEscalation=false"
        yield f"allowPrivilegeEscalation != false ({detail})"


def _unrestricted_capabilities(pod: JsonObject) -> Iterator[str]:
    def keeps(container: JsonObject) -> bool:
        dropped = (_context(container).get("capabilities") or {}).get("drop") or ()
        return "ALL" not in dropped

    names = _names(pod, keeps)
    who = _counted("container", names)
    details = [f'{who} must set securityContext.capabilities.drop=["ALL"]'] if names else []
    details += _must_not_add(pod, frozenset({"NET_BIND_SERVICE"}))
    if details:
        yield f"unrestricted capabilities ({'; '.join(details)})"


def _volumes(pod: JsonObject) -> Iterator[str]:
    bad = [volume for volume in pod.get("volumes") or () if not _VOLUMES & volume.keys()]
    if bad:
        names = [volume["name"] for volume in bad]
        types = sorted(
            {next((key for key in volume if key != "name"), "unknown") for volume in bad}
        )
        verb = "uses" if len(names) == 1 else "use"
        who = f"{_counted('volume', names)} {verb} {_counted('restricted volume type', types)}"
        yield f"restricted volume types ({who})"


def _root(pod: JsonObject) -> Iterator[str]:
    if pod.get("hostUsers") is False:
        return
    pod_value = _context(pod).get("runAsNonRoot")
    setters = ["pod"] if pod_value is False else []
    if bad := _names(pod, lambda container: _context(container).get("runAsNonRoot") is False):
        setters.append(_counted("container", bad))
    silent = _names(pod, lambda container: _context(container).get("runAsNonRoot") is None)
    setting = "securityContext.runAsNonRoot"
    if setters:
        yield f"runAsNonRoot != true ({' and '.join(setters)} must not set {setting}=false)"
    elif silent and not pod_value:
        who = f"pod or {_counted('container', silent)}"
        yield f"runAsNonRoot != true ({who} must set {setting}=true)"


def _uid_zero(pod: JsonObject) -> Iterator[str]:
    if pod.get("hostUsers") is False:
        return
    setters = ["pod"] if _context(pod).get("runAsUser") == 0 else []
    if bad := _names(pod, lambda container: _context(container).get("runAsUser") == 0):
        setters.append(_counted("container", bad))
    if setters:
        yield f"runAsUser=0 ({' and '.join(setters)} must not set runAsUser=0)"


def _profile(part: JsonObject) -> str | None:
    profile = _context(part).get("seccompProfile")
    return profile.get("type", "") if profile else None


def _seccomp(pod: JsonObject, *, refused: Callable[[str], bool]) -> Iterator[str]:
    def is_bad(part: JsonObject) -> bool:
        profile = _profile(part)
        return profile is not None and refused(profile)

    setters = ["pod"] if is_bad(pod) else []
    if bad := _names(pod, is_bad):
        setters.append(_counted("container", bad))
    if setters:
        values = sorted({str(_profile(part)) for part in (pod, *_containers(pod)) if is_bad(part)})
        who, setting = " and ".join(setters), "securityContext.seccompProfile.type"
        yield f"seccompProfile ({who} must not set {setting} to {_quoted(values)})"


def _restricted_seccomp(pod: JsonObject) -> Iterator[str]:
    if bad := list(_seccomp(pod, refused=lambda profile: profile not in _PROFILES)):
        yield from bad
        return
    silent = _names(pod, lambda container: _profile(container) is None)
    if silent and _profile(pod) is None:
        who = f"pod or {_counted('container', silent)}"
        setting = "securityContext.seccompProfile.type"
        yield f'seccompProfile ({who} must set {setting} to "RuntimeDefault" or "Localhost")'


_Check = Callable[[JsonObject], Iterator[str]]
# Each in the order of a real API server: by the names of its checks, those of baseline first.
_AT_BASELINE: tuple[_Check, ...] = (
    _non_default_capabilities,
    _host_namespaces,
    _host_paths,
    _host_ports,
    _privileged,
    _unconfined,
)
_AT_RESTRICTED: tuple[_Check, ...] = (
    _host_namespaces,
    _host_ports,
    _privileged,
    _escalation,
    _unrestricted_capabilities,
    _volumes,
    _root,
    _uid_zero,
    _restricted_seccomp,
)
