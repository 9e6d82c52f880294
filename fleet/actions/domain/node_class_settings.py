"""The settings that can be requested of a Karpenter EC2NodeClass, and the object they become."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

API_VERSION: Final = "karpenter.k8s.aws/v1"
KIND: Final = "EC2NodeClass"
SMALLEST_GIB: Final = 20
LARGEST_GIB: Final = 16_384
_MOST_TAGS: Final = 20
_ALIAS: Final = re.compile(r"(al2023|bottlerocket)@(latest|v[0-9][0-9.]{0,20})")
_IAM_NAME: Final = re.compile(r"[\w+=,.@-]{1,128}", re.ASCII)
_TAG: Final = re.compile(r"[^=,\s][^=,\n]{0,127}=[^,\n]{1,256}")
# The device that holds images and logs.
_DEVICES: Final = {"al2023": "/dev/xvda", "al2": "/dev/xvda", "bottlerocket": "/dev/xvdb"}


@dataclass(frozen=True, slots=True)
class NodeClassSettings:
    """The requested settings of a node class. Empty or None leaves an existing class unchanged. Tags are selectors,
    each "key=value"; all must match.
    """

    ami_alias: str = ""
    role: str = ""
    instance_profile: str = ""
    subnet_tags: tuple[str, ...] = ()
    security_group_tags: tuple[str, ...] = ()
    volume_gib: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> NodeClassSettings:
        volume = raw.get("volume_gib")
        return cls(
            ami_alias=str(raw.get("ami_alias", "")),
            role=str(raw.get("role", "")),
            instance_profile=str(raw.get("instance_profile", "")),
            subnet_tags=tuple(raw.get("subnet_tags", ())),
            security_group_tags=tuple(raw.get("security_group_tags", ())),
            volume_gib=None if volume is None else int(volume),
        )

    def problems(self, *, is_new: bool) -> dict[str, str]:
        """Return the problems by field. Empty if the settings are valid."""
        problems = {
            "ami_alias": _problem_with(
                self.ami_alias, _ALIAS, "use al2023@latest or al2023@v20250505"
            )
            or _needed(self.ami_alias, is_new=is_new),
            "role": _problem_with(self.role, _IAM_NAME, "use the name of an IAM role, not its ARN")
            or self._problem_with_identity(is_new=is_new),
            "instance_profile": _problem_with(
                self.instance_profile, _IAM_NAME, "use the name of an instance profile, not its ARN"
            ),
            "subnet_tags": _problem_with_tags(self.subnet_tags)
            or _needed(self.subnet_tags, is_new=is_new),
            "security_group_tags": _problem_with_tags(self.security_group_tags)
            or _needed(self.security_group_tags, is_new=is_new),
            "volume_gib": self._problem_with_volume(),
        }
        return {name: problem for name, problem in problems.items() if problem}

    def _problem_with_identity(self, *, is_new: bool) -> str:
        if self.role and self.instance_profile:
            return "name a role or an instance profile, not both"
        return "name a role or an instance profile" if is_new and not self._identity else ""

    def _problem_with_volume(self) -> str:
        if self.volume_gib is None or SMALLEST_GIB <= self.volume_gib <= LARGEST_GIB:
            return ""
        return f"use {SMALLEST_GIB} to {LARGEST_GIB} GiB"

    @property
    def _identity(self) -> str:
        return self.role or self.instance_profile


def read(live: Mapping[str, Any]) -> NodeClassSettings:
    """Return the current settings of a live class. Selectors other than one set of tags are left empty."""
    spec = live.get("spec") or {}
    aliases = [str(term["alias"]) for term in spec.get("amiSelectorTerms") or () if "alias" in term]
    return NodeClassSettings(
        ami_alias=aliases[0] if len(aliases) == 1 else "",
        role=str(spec.get("role", "")),
        instance_profile=str(spec.get("instanceProfile", "")),
        subnet_tags=_tags_of(spec.get("subnetSelectorTerms") or ()),
        security_group_tags=_tags_of(spec.get("securityGroupSelectorTerms") or ()),
        volume_gib=_volume_of(spec),
    )


def manifest(name: str, settings: NodeClassSettings) -> dict[str, Any]:
    """Return the manifest of a new class."""
    spec: dict[str, Any] = _spec({}, settings)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "slipway"}},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def patch(live: Mapping[str, Any], settings: NodeClassSettings) -> dict[str, Any]:
    """Return the merge patch that changes a class; what no setting names stays."""
    return {"spec": _spec(live.get("spec") or {}, settings)}


def device_of(spec: Mapping[str, Any], settings: NodeClassSettings) -> str:
    """Return the device with images and logs; empty for a family that is not known here."""
    alias = settings.ami_alias or next(
        (str(term["alias"]) for term in spec.get("amiSelectorTerms") or () if "alias" in term), ""
    )
    family = alias.partition("@")[0] or str(spec.get("amiFamily", ""))
    return _DEVICES.get(family.lower(), "")


def _spec(current: Mapping[str, Any], settings: NodeClassSettings) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if settings.ami_alias:
        terms = [{"alias": settings.ami_alias}]
        if terms != current.get("amiSelectorTerms"):
            # The alias says the family; another one that was set before would contradict it.
            spec |= {"amiSelectorTerms": terms, "amiFamily": None}
    if settings.role:
        spec |= {"role": settings.role, "instanceProfile": None}
    elif settings.instance_profile:
        spec |= {"instanceProfile": settings.instance_profile, "role": None}
    if settings.subnet_tags:
        spec["subnetSelectorTerms"] = [{"tags": _tags(settings.subnet_tags)}]
    if settings.security_group_tags:
        spec["securityGroupSelectorTerms"] = [{"tags": _tags(settings.security_group_tags)}]
    if settings.volume_gib is not None:
        spec["blockDeviceMappings"] = _devices(current, settings)
    return spec


def _devices(current: Mapping[str, Any], settings: NodeClassSettings) -> list[dict[str, Any]]:
    device, size = device_of(current, settings), f"{settings.volume_gib}Gi"
    kept = [dict(item) for item in current.get("blockDeviceMappings") or ()]
    for item in kept:
        if item.get("deviceName") == device:
            item["ebs"] = {**(item.get("ebs") or {}), "volumeSize": size}
            return kept
    ebs = {"volumeSize": size, "volumeType": "gp3", "encrypted": True}
    return [*kept, {"deviceName": device, "ebs": ebs}]


def _volume_of(spec: Mapping[str, Any]) -> int | None:
    device = device_of(spec, NodeClassSettings())
    for item in spec.get("blockDeviceMappings") or ():
        size = str((item.get("ebs") or {}).get("volumeSize", ""))
        if item.get("deviceName") == device and re.fullmatch(r"\d+Gi", size):
            return int(size.removesuffix("Gi"))
    return None


def _tags_of(terms: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    listed = list(terms)
    if len(listed) != 1 or set(listed[0]) != {"tags"}:
        return ()
    texts = tuple(f"{key}={value}" for key, value in sorted(listed[0]["tags"].items()))
    return () if _problem_with_tags(texts) else texts


def _tags(texts: Iterable[str]) -> dict[str, str]:
    pairs = (text.partition("=") for text in texts)
    return {key: value for key, _, value in pairs}


def _problem_with(text: str, pattern: re.Pattern[str], fix: str) -> str:
    return "" if not text or pattern.fullmatch(text) else fix


def _needed(value: object, *, is_new: bool) -> str:
    return "a new class needs it" if is_new and not value else ""


def _problem_with_tags(texts: tuple[str, ...]) -> str:
    if len(texts) > _MOST_TAGS:
        return f"use at most {_MOST_TAGS}"
    bad = next((text for text in texts if not _TAG.fullmatch(text)), None)
    return "" if bad is None else f"write {bad[:40]} as key=value"
