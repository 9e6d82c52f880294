"""What of a serving spec a cluster can give: why a setting is off, before anyone chooses it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.errors import Rejected
from deployments.spec.domain import serving_spec
from deployments.spec.domain.scaling import FIXED, HPA, KEDA, KNATIVE, SCALING_KINDS
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities

# Setting and value -> the cluster's option that it needs.
NEEDS: Final[Mapping[tuple[str, Any], str]] = {
    ("scaling.kind", HPA): "hpa",
    ("scaling.kind", KEDA): "keda",
    ("scaling.kind", KNATIVE): "knative",
    ("scaling.can_scale_to_zero", True): "scale-to-zero",
    ("storage.model_cache", "cluster"): "model-cache",
    ("network.strict_mtls", True): "strict-mtls",
    ("network.service_monitor", True): "service-monitor",
}
MULTI_NODE: Final = "multi-node"
# What a setting is tried with, to learn whether the engine takes it at all.
_TRIED: Final[Mapping[str, Any]] = {
    "scaling.can_scale_to_zero": True,
    "scaling.office_hours": {},
    "scaling.sqs_queue_url": "https://sqs.us-east-1.amazonaws.com/111122223333/jobs",
    "batching": {"max_queue_delay_us": 1},
    "instances_per_gpu": 2,
    "warm_up": True,
    "summary_latencies": True,
    "components": {"transformer_image": "registry/name:1"},
    "llm": {"hugging_face_id": "a/b"},
    "packed": [{"model": "a", "version": 1}],
}


@dataclass(frozen=True, slots=True)
class Missing:
    """`words` say what the cluster lacks; `fix` what an admin, or the requester, does about it."""

    path: str
    words: str
    fix: str
    is_blocking: bool = True


def missing(spec: ServingSpec, offered: Capabilities) -> list[Missing]:
    """Settings of the spec that do not work on the cluster. What is not known is left alone."""
    wanted = [
        (path, option) for (path, value), option in NEEDS.items() if _value_of(spec, path) == value
    ]
    if spec.nodes > 1:
        wanted.append(("llm.nodes", MULTI_NODE))
    found = []
    for path, option in wanted:
        offer = offered.offers(option)
        if offer.ok is False:
            fix = f"Change {path} or ask a platform admin to install it."
            # Without metrics the HPA is accepted and stays at the fewest: slow, but it serves.
            found.append(Missing(path, offer.why, fix, is_blocking=option != HPA))
    return found


def reasons(engine: str, scaling: str, offered: Capabilities) -> dict[str, str]:
    """Why settings are off with that engine and autoscaler: "path" or "path=value" -> the reason.

    What is not in the answer is on.
    """
    found = {}
    for (path, value), option in NEEDS.items():
        offer = offered.offers(option)
        if offer.ok is False:
            found[_key(path, value)] = offer.why
    base = _base(engine)
    for kind in SCALING_KINDS:
        _tell(found, _key("scaling.kind", kind), _refusal(base, "scaling.kind", kind))
    key = _key("storage.model_cache", "cluster")
    _tell(found, key, _refusal(base, "storage.model_cache", "cluster"))
    base["scaling"] = _scaling_tried(scaling)
    for path, value in _TRIED.items():
        if path not in found:
            _tell(found, path, _refusal(base, path, value))
    no_keda = found.get(_key("scaling.kind", KEDA), "")
    for path in ("scaling.office_hours", "scaling.sqs_queue_url"):
        _tell(found, path, no_keda)
    return found


def _scaling_tried(kind: str) -> dict[str, Any]:
    """Of what KEDA may watch, this can start the first replica again; its field says which others."""
    if kind == KEDA:
        return {"kind": kind, "metric": "gateway-latency"}
    return {"kind": kind} if kind else {}


def engine_reason(engine: str, offered: Capabilities) -> str:
    """Empty when it runs there, or when that is not known."""
    offer = offered.offers_engine(engine)
    return offer.why if offer.ok is False else ""


def _tell(found: dict[str, str], key: str, words: str) -> None:
    """What the engine cannot use comes first: no installation changes that."""
    if words:
        found[key] = words


def _refusal(base: Mapping[str, Any], path: str, value: Any) -> str:
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
        serving_spec.from_json(data)
    except Rejected as error:
        told = error.fields
        return next((told[key] for key in (path, group) if key in told), "")
    return ""


def _base(engine: str) -> dict[str, Any]:
    is_llm = engine in serving_spec.LLM_ENGINES
    return {
        "engine": engine,
        "instance_type": "any",
        "max_replicas": 2,
        "scaling": {},
        "llm": {"hugging_face_id": "a/b"} if is_llm else None,
    }


def _value_of(spec: ServingSpec, path: str) -> Any:
    value: Any = spec
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _key(path: str, value: Any) -> str:
    return path if value is True else f"{path}={value}"
