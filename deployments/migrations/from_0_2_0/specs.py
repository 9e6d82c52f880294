"""Serving specs and scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def convert_spec(spec: Mapping[str, Any]) -> Json:
    """Convert the spec of a revision. Addresses of 0.2.0 were open. Images of transformers and explainers are no
    setting any more.
    """
    converted = {name: value for name, value in spec.items() if name != "components"}
    if "packed" in converted:
        converted["additional_models"] = converted.pop("packed")
    if "scaling" in converted:
        converted["scaling"] = _convert_scaling(converted["scaling"])
    converted["network"] = _convert_network(converted.get("network", {}))
    return converted


def convert_scale(scale: Mapping[str, Any]) -> Json:
    """Convert the scale of a deployment or of a change request. {} is no scale."""
    converted = dict(scale)
    if "scaling" in converted:
        converted["scaling"] = _convert_scaling(converted["scaling"])
    if "network" in converted:
        converted["network"] = _convert_network(converted["network"])
    return converted


def removed_images(spec: Mapping[str, Any]) -> list[str]:
    """List the images of a spec that are no setting any more."""
    components: Mapping[str, str] = spec.get("components") or {}
    return [image for _, image in sorted(components.items()) if image]


def _convert_scaling(scaling: Mapping[str, Any]) -> Json:
    converted = {name: value for name, value in scaling.items() if name != "sqs_queue_url"}
    url = scaling.get("sqs_queue_url", "")
    if not url:
        return converted
    converted["sqs"] = {"queue_url": url}
    if scaling.get("metric") == "sqs":
        if scaling.get("target"):
            converted["sqs"]["messages"] = scaling["target"]
        converted |= {"metric": "", "target": 0}
    return converted


def _convert_network(network: Mapping[str, Any]) -> Json:
    return {**network, "access": "open"}
