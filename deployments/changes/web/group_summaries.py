"""One-line summaries of closed groups of settings."""

from __future__ import annotations

from collections.abc import Mapping

from deployments.changes.web import request_body
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.placement import catalogue
from portal.ui.definition_fields import ON


def scaling(data: Mapping[str, str]) -> str:
    kind = data.get("scaling_kind", "")
    is_range = data.get("min_replicas", "") != data.get("max_replicas", "")
    choices = request_body.DEFINITIONS["scaling.kind"].choices
    summary = choices.get(kind, "") if kind else "automatic" if is_range else "fixed"
    zero = ", down to zero" if data.get("scaling_can_scale_to_zero") == ON else ""
    parts = [
        f", {definition.label}"
        for path, definition in request_body.DEFINITIONS.items()
        if path.startswith("scaling.")
        and definition.model is not None
        and data.get(path.replace(".", "_")) == ON
    ]
    return f"{summary}{zero}{''.join(parts)}"


def batching(data: Mapping[str, str]) -> str:
    if data.get("engine") in LLM_ENGINES:
        return "the server batches automatically"
    batching = "dynamic" if data.get("batching_is_dynamic") == ON else "none"
    delay = data.get("batching_max_queue_delay_us", "0")
    waits = f", waits {delay} µs" if delay not in ("", "0") else ""
    warm = ", warmed up" if data.get("warm_up") == ON else ""
    return f"{batching}{waits} · {data.get('instances_per_gpu', '1')} per GPU{warm}"


def triton(data: Mapping[str, str]) -> str:
    parts = [
        text
        for name, text in (
            ("triton_sequence", "sequence batching"),
            ("triton_queue_priority_levels", "priorities"),
            ("triton_response_cache_mib", "response cache"),
            ("triton_decoupled", "decoupled"),
        )
        if data.get(name, "") not in ("", "off")
    ]
    return ", ".join(parts) or "Triton's defaults"


def placement(data: Mapping[str, str]) -> str:
    return catalogue.describe(request_body.placement_of(data))


def additional_models(data: Mapping[str, str]) -> str:
    labels = [data[name] for name in request_body.ADDITIONAL_MODELS if data.get(name)]
    return f"with {', '.join(labels)}" if labels else "none: one model per Triton"


def summarize_advanced(data: Mapping[str, str]) -> str:
    return f"{data.get('cpu', '')} CPU, {data.get('memory', '')} memory, network, cache"
