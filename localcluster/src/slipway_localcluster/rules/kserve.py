"""The refusals of KServe's admission webhooks for an InferenceService."""

import re
from collections.abc import Iterator
from typing import Any

from slipway_localcluster.errors import JsonObject

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_AUTOSCALER = "serving.kserve.io/autoscalerClass"
_AUTOSCALERS = ("external", "hpa", "keda", "none")


def find_refusals(obj: JsonObject) -> Iterator[str]:
    """Find the reasons for a refusal, each a sentence of the webhook's response."""
    metadata = obj["metadata"]
    if not _NAME.fullmatch(metadata.get("name", "")):
        yield (
            f'the InferenceService "{metadata.get("name")}" is invalid: a InferenceService name must '
            "consist of lower case alphanumeric characters or '-', and must start with alphabetical "
            f"character (regex used for validation is '{_NAME.pattern}')"
        )
    scaler = (metadata.get("annotations") or {}).get(_AUTOSCALER)
    if scaler is not None and scaler not in _AUTOSCALERS:
        yield f"[{scaler}] is not a supported autoscaler class type"
    spec = obj.get("spec") or {}
    for name in ("predictor", "transformer", "explainer"):
        yield from _replica_refusals(spec.get(name) or {})


def written_back(obj: JsonObject) -> JsonObject:
    """Return the object as its webhook returns it: a model format without a name gets an empty one."""
    spec = obj.get("spec") or {}
    predictor = spec.get("predictor") or {}
    model = predictor.get("model") or {}
    if "modelFormat" not in model:
        return obj
    model = model | {"modelFormat": {"name": "", **model["modelFormat"]}}
    return obj | {"spec": spec | {"predictor": predictor | {"model": model}}}


def _replica_refusals(component: JsonObject) -> Iterator[str]:
    least: Any = component.get("minReplicas", 1)
    most: Any = component.get("maxReplicas", 0)
    if least < 0:
        yield "'MinReplicas' cannot be less than 0"
    elif most < 0:
        yield "'MaxReplicas' cannot be less than 0"
    elif 0 < most < least:
        yield "'MinReplicas' cannot be greater than MaxReplicas"
