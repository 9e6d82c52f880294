"""Translate edits made on the cluster into a change of the serving spec, as far as it has fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deployments.delivery.domain.edits import Edit
from deployments.spec.domain import replicas
from deployments.spec.domain.scaling import FIXED
from deployments.spec.domain.serving_spec import ServingSpec

_AMOUNT = re.compile(r"\.resources\.(?:requests|limits)(?:\.(\w+)|\[([^\]]+)\])$")
_ENV = re.compile(r"\.env\[(\w+)\](\.value)?$")


@dataclass(frozen=True, slots=True)
class Adoption:
    """A spec with edits adopted. `unsupported` are the edits that the spec has no field for."""

    spec: ServingSpec
    unsupported: tuple[Edit, ...]


def adopt(spec: ServingSpec, edits: Sequence[Edit]) -> Adoption:
    """Adopt edits into the spec. Raises Rejected if the edited values are not a valid spec."""
    unsupported = []
    for edit in edits:
        changed = _with_edit(spec, edit)
        if changed is None:
            unsupported.append(edit)
        else:
            spec = changed
    return Adoption(spec, tuple(unsupported))


def _with_edit(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    if edit.kind not in ("InferenceService", "Deployment") or not edit.path:
        return None
    return _with_replicas(spec, edit) or _with_amount(spec, edit) or _with_env(spec, edit)


def _with_replicas(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    if not edit.live.isdecimal():
        return None
    count = int(edit.live)
    if edit.path in ("spec.replicas", "spec.predictor.minReplicas"):
        # A fixed number has no maximum above it that an autoscaler could use.
        is_fixed = spec.scaling.kind == FIXED
        least, most = count, count if is_fixed else max(count, spec.max_replicas)
    elif edit.path == "spec.predictor.maxReplicas":
        least, most = min(count, spec.min_replicas), count
    else:
        return None
    return replicas.with_replicas(spec, min_replicas=least, max_replicas=most)


def _with_amount(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    """Adopt an edited amount. Requests equal limits here, so an edit of either is enough. None if the spec has no
    such field.
    """
    match = _AMOUNT.search(edit.path)
    if match is None or not edit.live:
        return None
    resource = match[1] or match[2]
    if resource == "cpu":
        return spec.replace(cpu=edit.live)
    if resource == "memory":
        return spec.replace(memory=edit.live)
    if resource == spec.gpu_resource and edit.live.isdecimal():
        return spec.replace(gpus=int(edit.live))
    return None


def _with_env(spec: ServingSpec, edit: Edit) -> ServingSpec | None:
    match = _ENV.search(edit.path)
    if match is None:
        return None
    others = tuple((name, value) for name, value in spec.env if name != match[1])
    is_removed = not edit.live and match[2] is None
    if len(others) == len(spec.env):
        return None
    return spec.replace(env=others if is_removed else (*others, (match[1], edit.live)))
