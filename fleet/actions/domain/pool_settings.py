"""The settings that can be requested of a Karpenter NodePool, and the object they become."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from fleet.gpus.domain.capacity_types import ON_DEMAND, RESERVED, SPOT
from fleet.gpus.domain.ec2_types import LABEL_PREFIXES
from fleet.gpus.domain.shares import WHOLE

API_VERSION: Final = "karpenter.sh/v1"
KIND: Final = "NodePool"
CAPACITY: Final = "karpenter.sh/capacity-type"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
CAPACITY_TYPES: Final = (ON_DEMAND, RESERVED, SPOT)
# The last since Karpenter 1.14; the dry run says where a cluster's Karpenter does not know it.
POLICIES: Final = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
EC2_NODE_CLASS: Final = "EC2NodeClass"
AUTO_MODE_NODE_CLASS: Final = "NodeClass"
_CLASS_GROUPS: Final = {
    EC2_NODE_CLASS: "karpenter.k8s.aws",
    AUTO_MODE_NODE_CLASS: "eks.amazonaws.com",
}
# Auto Mode ends nodes after 21 days at the latest; its default is 14.
_EXPIRE_AFTER: Final = {EC2_NODE_CLASS: "720h", AUTO_MODE_NODE_CLASS: "336h"}
_MOST_TYPES: Final = 40
_MOST_TAINTS: Final = 20
_MOST_GPUS: Final = 10_000
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TYPE: Final = re.compile(r"[a-z0-9-]{2,30}\.[a-z0-9-]{2,20}")
_TAINT: Final = re.compile(
    r"(?P<key>[A-Za-z0-9]([-A-Za-z0-9_./]{0,120}[A-Za-z0-9])?)(=(?P<value>[-A-Za-z0-9_.]{0,63}))?"
    r":(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)"
)
_AFTER: Final = re.compile(r"([0-9]{1,5}(s|m|h)){1,3}|Never")


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The requested settings of a pool. Empty `instance_types` keeps how the pool chooses types; `gpu_limit` None
    means no limit. `taints` are in kubectl notation: key=value:Effect. `node_class` is the node class of a new
    pool, of the kind that its cluster has: EC2NodeClass, or NodeClass of EKS Auto Mode.
    """

    instance_types: tuple[str, ...]
    capacity_types: tuple[str, ...] = ("on-demand",)
    gpu_limit: int | None = None
    taints: tuple[str, ...] = ()
    consolidation: str = "WhenEmpty"
    consolidate_after: str = "5m"
    node_class: str = ""
    node_class_kind: str = EC2_NODE_CLASS

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> PoolSettings:
        return cls(
            instance_types=tuple(raw["instance_types"]),
            capacity_types=tuple(raw["capacity_types"]),
            gpu_limit=raw["gpu_limit"],
            taints=tuple(raw["taints"]),
            consolidation=raw["consolidation"],
            consolidate_after=raw["consolidate_after"],
            node_class=raw["node_class"],
            node_class_kind=raw.get("node_class_kind", EC2_NODE_CLASS),
        )

    def problems(self, *, is_new: bool) -> dict[str, str]:
        """Return the problems by field. Empty if the settings are valid."""
        problems = {
            "instance_types": _problem_with_types(self.instance_types, is_needed=is_new),
            "capacity_types": _problem_with_capacity(self.capacity_types),
            "gpu_limit": _problem_with_limit(self.gpu_limit),
            "taints": _problem_with_taints(self.taints),
            "consolidation": ""
            if self.consolidation in POLICIES
            else f"use {' or '.join(POLICIES)}",
            "consolidate_after": ""
            if _AFTER.fullmatch(self.consolidate_after)
            else "use a duration such as 30s, 5m or 1h, or Never",
            "node_class": ""
            if not is_new or _NAME.fullmatch(self.node_class)
            else f"use the name of one of the cluster ({self.node_class_kind})",
        }
        return {field: problem for field, problem in problems.items() if problem}


def problem_with_name(name: str) -> str:
    if _NAME.fullmatch(name):
        return ""
    return "use at most 63 lowercase letters, digits and hyphens"


def read(live: Mapping[str, Any]) -> PoolSettings:
    """Return the current settings of a live pool. `instance_types` is empty if the pool lists none."""
    spec = live.get("spec") or {}
    template = (spec.get("template") or {}).get("spec") or {}
    disruption = spec.get("disruption") or {}
    limit = str((spec.get("limits") or {}).get(WHOLE, ""))
    reference = template.get("nodeClassRef") or {}
    return PoolSettings(
        instance_types=_values(template, INSTANCE_TYPE),
        capacity_types=_values(template, CAPACITY) or ("on-demand",),
        gpu_limit=int(limit) if limit.isdigit() else None,
        taints=tuple(_taint_text(taint) for taint in template.get("taints") or ()),
        consolidation=str(disruption.get("consolidationPolicy", "WhenEmptyOrUnderutilized")),
        consolidate_after=str(disruption.get("consolidateAfter", "0s")),
        node_class=str(reference.get("name", "")),
        node_class_kind=str(reference.get("kind", EC2_NODE_CLASS)),
    )


def manifest(name: str, settings: PoolSettings) -> dict[str, Any]:
    """Return the manifest of a new pool."""
    kind = settings.node_class_kind
    reference = {"group": _CLASS_GROUPS[kind], "kind": kind, "name": settings.node_class}
    template: dict[str, Any] = {
        "nodeClassRef": reference,
        "requirements": _requirements(settings, ()),
        "expireAfter": _EXPIRE_AFTER[kind],
    }
    if settings.taints:
        template["taints"] = [_taint(text) for text in settings.taints]
    spec: dict[str, Any] = {"template": {"spec": template}, "disruption": _disruption(settings)}
    if settings.gpu_limit is not None:
        spec["limits"] = {WHOLE: str(settings.gpu_limit)}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "slipway"}},
        "spec": spec,
    }


def has_same_settings(live: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether a pool has what `manifest` states, whatever the cluster filled in beside it."""
    requirements = [
        item["spec"]["template"]["spec"].get("requirements", []) for item in (live, made)
    ]
    return read(live) == read(made) and requirements[0] == requirements[1]


def patch(live: Mapping[str, Any], settings: PoolSettings) -> dict[str, Any]:
    """Return the merge patch that changes a pool; what no setting names stays."""
    template = ((live.get("spec") or {}).get("template") or {}).get("spec") or {}
    limit = None if settings.gpu_limit is None else str(settings.gpu_limit)
    return {
        "spec": {
            "template": {
                "spec": {
                    "requirements": _requirements(settings, template.get("requirements") or ()),
                    "taints": [_taint(text) for text in settings.taints] or None,
                }
            },
            "limits": {WHOLE: limit},
            "disruption": _disruption(settings),
        }
    }


def apply_patch(target: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7386)."""
    merged = dict(target)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = apply_patch(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged


def _requirements(
    settings: PoolSettings, kept: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    types = sorted(settings.instance_types)
    others = [
        dict(item)
        for item in kept
        if item["key"] != CAPACITY and not (types and _chooses_types(item["key"]))
    ]
    of_types = [{"key": INSTANCE_TYPE, "operator": "In", "values": types}] if types else []
    capacity = {"key": CAPACITY, "operator": "In", "values": sorted(settings.capacity_types)}
    return [*others, *of_types, capacity]


def _chooses_types(key: str) -> bool:
    """Whether a requirement chooses instance types, by name or by other labels that could contradict a list of names."""
    return key == INSTANCE_TYPE or key.startswith(LABEL_PREFIXES)


def _disruption(settings: PoolSettings) -> dict[str, Any]:
    return {
        "consolidationPolicy": settings.consolidation,
        "consolidateAfter": settings.consolidate_after,
    }


def _values(template: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(
        str(value)
        for item in template.get("requirements") or ()
        if item["key"] == key and item["operator"] == "In"
        for value in item.get("values") or ()
    )


def _taint(text: str) -> dict[str, Any]:
    match = _TAINT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a taint")
    value = {"value": match["value"]} if match["value"] else {}
    return {"key": match["key"], "effect": match["effect"], **value}


def _taint_text(taint: Mapping[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _problem_with_types(names: Sequence[str], *, is_needed: bool) -> str:
    if is_needed and not names:
        return "name at least one instance type"
    if len(names) > _MOST_TYPES:
        return f"use at most {_MOST_TYPES}"
    unknown = next((name for name in names if not _TYPE.fullmatch(name)), None)
    return "" if unknown is None else f"{unknown[:40]} is not an instance type such as g5.xlarge"


def _problem_with_capacity(names: Sequence[str]) -> str:
    if names and set(names) <= set(CAPACITY_TYPES):
        return ""
    return f"use {', '.join(CAPACITY_TYPES[:-1])} or {CAPACITY_TYPES[-1]}, or several of them"


def _problem_with_limit(limit: int | None) -> str:
    return "" if limit is None or 0 <= limit <= _MOST_GPUS else f"use 0 to {_MOST_GPUS}"


def _problem_with_taints(taints: Sequence[str]) -> str:
    if len(taints) > _MOST_TAINTS:
        return f"use at most {_MOST_TAINTS}"
    bad = next((text for text in taints if not _TAINT.fullmatch(text)), None)
    return "" if bad is None else f"write {bad[:40]} as key=value:NoSchedule"
