"""The settings that a cluster supports: why one is off, before anyone chooses it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.access.domain import catalogue as access_kinds
from deployments.spec.domain.applicability import list_unsupported, needs_of
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.scaling import FIXED, HPA, KEDA, SCALING_KINDS
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities, Offer
from portal.core import definitions
from portal.core.definitions import Rejected

_NEEDS: Final = needs_of(ServingSpec)
MULTI_NODE: Final = "multi-node"
LEADER_WORKER_SET: Final = "leader-worker-set"
_JOB_QUEUES: Final[Mapping[str, Any]] = {
    "sqs": {"queue_url": "https://sqs.us-east-1.amazonaws.com/111122223333/jobs"},
    "kafka": {"bootstrap_servers": "kafka:9092", "topic": "jobs", "consumer_group": "models"},
    "redis": {"address": "redis:6379", "list": "jobs"},
}
# Where it is not known, the setting could be ignored, and everyone served.
_CERTAIN: Final = frozenset(
    {"model-routing", *(kind.option for kind in access_kinds.KINDS if kind.option)}
)
# What the requester does instead, where it is a decision of its own.
_FIXES: Final[Mapping[str, str]] = {
    "model-routing": "Turn {path} off. The deployment's own address still works.",
}
_FIX: Final = "Change {path} or ask a platform admin to install it."
_ONLY_KEDA: Final = ("office_hours", "max_latency_ms", "max_gpu_memory_percent", *_JOB_QUEUES)
_NEEDS_KEDA: Final = "it needs KEDA."
# A value of each setting that depends on others, to learn whether the spec accepts it.
_TRIED: Final[Mapping[str, Any]] = {
    "scaling.can_scale_to_zero": True,
    "scaling.office_hours": {},
    "scaling.max_latency_ms": 200,
    "scaling.max_gpu_memory_percent": 90,
    **{f"scaling.{name}": queue for name, queue in _JOB_QUEUES.items()},
    "additional_models": [{"model": "a", "version": 1}],
}


@dataclass(frozen=True, slots=True)
class Missing:
    """A setting that the cluster does not support. `message` says what the cluster lacks; `fix` what an admin,
    or the requester, does about it.
    """

    path: str
    message: str
    fix: str
    is_blocking: bool = True


def missing(spec: ServingSpec, capabilities: Capabilities) -> list[Missing]:
    """Return the settings of the spec that do not work on the cluster; an unknown option is left out."""
    needed = needed_options(spec)
    if spec.nodes > 1:
        needed.append(("llm.nodes", MULTI_NODE if spec.split_nodes > 1 else LEADER_WORKER_SET))
    if spec.scaling.kind == HPA and spec.scaling.metric == "queue":
        needed = [(path, option) for path, option in needed if option != HPA]
        needed.append(("scaling.metric", "external-metrics"))
    result = []
    for path, option in needed:
        offer = capabilities.offers(option)
        if _is_refused(option, offer):
            is_access = path == "network.access"
            fix = spec.network.access_kind.fix if is_access else _FIXES.get(option, _FIX)
            # Without metrics the HPA is accepted and stays at min replicas: slow, but it serves.
            result.append(
                Missing(path, offer.why, fix.format(path=path), is_blocking=option != HPA)
            )
    return result


def needed_options(spec: ServingSpec) -> list[tuple[str, str]]:
    """List path and option of what settings of the spec need of a cluster, one by one."""
    stated = [
        (path, option)
        for (path, value), option in _NEEDS.items()
        if definitions.value_at(spec, path) == value
    ]
    return [*stated, *catalogue.needs_of(spec)]


def reasons(engine: str, scaling: str, capabilities: Capabilities) -> dict[str, str]:
    """Return why settings are off with that engine and autoscaler: "path" or "path=value" -> the reason.

    Reasons of the engine come before those of the cluster: no installation changes them.
    """
    result = {}
    for (path, value), option in _NEEDS.items():
        offer = capabilities.offers(option)
        if _is_refused(option, offer):
            result[_key(path, value)] = offer.why
    base = _base(engine)
    for kind in SCALING_KINDS:
        result |= _refusal(base, "scaling.kind", kind)
    result |= _refusal(base, "storage.model_cache", "cluster")
    result |= list_unsupported(engine, ServingSpec)
    base["scaling"] = _scaling_tried(scaling)
    for path, value in _TRIED.items():
        if path not in result:
            result |= _refusal(base, path, value)
    if _key("scaling.kind", KEDA) in result:
        # Why KEDA cannot be chosen stands at the choice.
        result |= {f"scaling.{name}": _NEEDS_KEDA for name in _ONLY_KEDA}
    return result


def _is_refused(option: str, offer: Offer) -> bool:
    return offer.ok is False or (offer.ok is None and option in _CERTAIN)


def _scaling_tried(kind: str) -> dict[str, Any]:
    """Return a scaling to test support with; for KEDA, a metric that can scale up from zero."""
    if kind == KEDA:
        return {"kind": kind, "metric": "gateway-latency"}
    return {"kind": kind} if kind else {}


def engine_reason(engine: str, capabilities: Capabilities) -> str:
    """Return why the engine does not run on the cluster. Empty when it does, or when that is not known."""
    offer = capabilities.offers_engine(engine)
    return offer.why if offer.ok is False else ""


def _refusal(base: Mapping[str, Any], path: str, value: Any) -> dict[str, str]:
    """Return the reason for which the spec refuses the value, by its key. Empty when it accepts it."""
    data = copy.deepcopy(dict(base))
    group, _, name = path.partition(".")
    if name:
        data[group] = {**data.get(group, {}), name: value}
    else:
        data[group] = value
    if path == "scaling.kind":
        data["max_replicas"] = 1 if value == FIXED else 2
        data["scaling"]["office_hours"] = {} if value == KEDA else None
    try:
        ServingSpec.from_json(data)
    except Rejected as error:
        fixes = [error.fields[key] for key in (path, group) if key in error.fields]
        key = _key(path, value) if isinstance(value, str) and path not in _TRIED else path
        return {key: fixes[0]} if fixes else {}
    return {}


def _base(engine: str) -> dict[str, Any]:
    is_llm = engine in LLM_ENGINES
    return {
        "engine": engine,
        "instance_type": "any",
        "max_replicas": 2,
        "scaling": {},
        "llm": {"hugging_face_id": "a/b"} if is_llm else None,
    }


def _key(path: str, value: Any) -> str:
    return path if value is True else f"{path}={value}"
