"""From edits on the cluster to the serving spec that would say the same, as far as one can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deployments.delivery.domain.edits import Edit
from deployments.spec.domain import replicas
from deployments.spec.domain.parts import FIXED
from deployments.spec.domain.serving_spec import ServingSpec

_AMOUNT = re.compile(r"\.resources\.(?:requests|limits)(?:\.(\w+)|\[([^\]]+)\])$")
_ENV = re.compile(r"\.env\[(\w+)\](\.value)?$")


@dataclass(frozen=True, slots=True)
class Adopted:
    """`left` are edits that the spec has no word for."""

    spec: ServingSpec
    left: tuple[Edit, ...]


def adopt(spec: ServingSpec, edits: Sequence[Edit]) -> Adopted:
    """Raises Rejected when the edited values make no legal spec."""
    left = []
    for edit in edits:
        changed = _with(spec, edit)
        if changed is None:
            left.append(edit)
        else:
            spec = changed
    return Adopted(spec, tuple(left))


def _with(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    if edit.kind not in ("InferenceService", "Deployment") or not edit.path:
        return None
    return _with_replicas(spec, edit) or _with_amount(spec, edit) or _with_env(spec, edit)


def _with_replicas(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    if not edit.live.isdecimal():
        return None
    count = int(edit.live)
    if edit.path in ("spec.replicas", "spec.predictor.minReplicas"):
        # Of a fixed number it is the number itself: nothing was there to scale beyond it.
        is_fixed = spec.scaling.kind == FIXED
        least, most = count, count if is_fixed else max(count, spec.max_replicas)
    elif edit.path == "spec.predictor.maxReplicas":
        least, most = min(count, spec.min_replicas), count
    else:
        return None
    return replicas.with_replicas(spec, min_replicas=least, max_replicas=most)


def _with_amount(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    """Requests and limits are the same here, so either of them says it."""
    found = _AMOUNT.search(edit.path)
    if found is None or not edit.live:
        return None
    resource = found[1] or found[2]
    if resource == "cpu":
        return replace(spec, cpu=edit.live)
    if resource == "memory":
        return replace(spec, memory=edit.live)
    if resource == spec.gpu_resource and edit.live.isdecimal():
        return replace(spec, gpus=int(edit.live))
    return None


def _with_env(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    found = _ENV.search(edit.path)
    if found is None:
        return None
    others = tuple((name, value) for name, value in spec.env if name != found[1])
    is_removed = not edit.live and found[2] is None
    if len(others) == len(spec.env):
        return None
    return replace(spec, env=others if is_removed else (*others, (found[1], edit.live)))
