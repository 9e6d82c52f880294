"""Golden requests that warm a revision up: those that its spec names, as they were when it was requested."""

from __future__ import annotations

from deployments.models import GoldenRequest, ModelVersion
from deployments.registry.domain import signatures
from deployments.registry.domain.triton_config.warm_up_samples import WarmUpSample, sample_of
from deployments.spec.domain.engines import ONNX_ENGINES
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core import definitions
from portal.core.definitions import Rejected

_FIELD = "triton.warm_up.golden_ids"


def is_used(spec: ServingSpec) -> bool:
    return spec.engine in ONNX_ENGINES and spec.triton.warm_up.data == "golden"


def pin_golden(spec: ServingSpec, version: ModelVersion) -> ServingSpec:
    """Name the model's golden requests of now, unless the spec names some. Raises Rejected without any."""
    if not is_used(spec):
        return spec
    named = spec.triton.warm_up.golden_ids
    of_model = GoldenRequest.objects.filter(model=version.model_id)
    known = of_model.filter(pk__in=named) if named else of_model.filter(retired_at=None)
    keys = tuple(sorted(known.values_list("pk", flat=True)))
    if not keys:
        message = (
            f"{version.model} has no golden requests to warm up with. Save one on the page of a "
            "deployment, or set the warm-up data to zeros."
        )
        raise Rejected(message, {"triton.warm_up.data": message})
    if named and keys != named:
        others = ", ".join(str(key) for key in named if key not in keys)
        message = f"{version.model} has no golden request {others}. Leave the field empty for all."
        raise Rejected(message, {_FIELD: message})
    with definitions.inside("triton"):
        triton = spec.triton.replace(warm_up=spec.triton.warm_up.replace(golden_ids=keys))
    return spec.replace(triton=triton)


def without_pins(spec: ServingSpec) -> ServingSpec:
    """Unpin the golden requests, so that another version warms up with those of the day on which it is
    requested.
    """
    if not spec.triton.warm_up.golden_ids:
        return spec
    warm_up = spec.triton.warm_up.replace(golden_ids=())
    return spec.replace(triton=spec.triton.replace(warm_up=warm_up))


def samples_of(version: ModelVersion, spec: ServingSpec) -> list[WarmUpSample]:
    """Return the samples of a warm-up. Golden requests never change, and deleted ones keep their row."""
    if not is_used(spec):
        return []
    rows = GoldenRequest.objects.filter(pk__in=spec.triton.warm_up.golden_ids).order_by("pk")
    signature = signatures.from_json(version.signature)
    return [sample_of(f"golden-{row.pk}", row.request, signature) for row in rows]
