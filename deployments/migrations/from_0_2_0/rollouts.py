"""Rollout plans, the results of their guards and the figures of their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
_GUARDS = {"Share of requests": "Traffic split"}


def convert_plan(plan: Mapping[str, Any]) -> Json:
    """Convert a plan with steps. Nothing was watched after promotion, and no pod was spared while it warmed up."""
    return {**plan, "watch_seconds": 0, "warmup_seconds": 0}


def convert_results(results: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Convert the results of guards."""
    return [_convert_result(result) for result in results]


def convert_event(data: Mapping[str, Any]) -> Json:
    """Convert the data of a rollout's event: the results of an abort, or nothing."""
    return (
        {**data, "evidence": convert_results(data["evidence"])} if "evidence" in data else {**data}
    )


def convert_observation(observed: Mapping[str, Any]) -> Json:
    """Convert the figures of a step."""
    converted = dict(observed)
    for old, new in (("share", "split"), ("why", "reason"), ("silence", "stale_metrics")):
        if old in converted:
            converted[new] = converted.pop(old)
    return converted


def _convert_result(result: Mapping[str, Any]) -> Json:
    converted = {name: value for name, value in result.items() if name != "words"}
    guard = result["guard"]
    return {**converted, "guard": _GUARDS.get(guard, guard), "message": result["words"]}
