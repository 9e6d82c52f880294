"""Kubernetes events of pods, as people read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleet.observation.domain.parse import parse_time

_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An event of a pod. `count` is how often it happened, `at` when it did last."""

    pod: str
    reason: str
    message: str
    is_warning: bool
    count: int
    at: datetime | None


def list_events(items: Iterable[Mapping[str, Any]], pods: Collection[str]) -> list[PodEvent]:
    """List the events of these pods, newest first."""
    events = [
        _parse(item)
        for item in items
        if (item.get("involvedObject") or {}).get("kind", "Pod") == "Pod"
        and (item.get("involvedObject") or {}).get("name") in pods
    ]
    return sorted(events, key=lambda event: event.at or _EARLIEST, reverse=True)


def _parse(item: Mapping[str, Any]) -> PodEvent:
    # Components that use events.k8s.io count in a series, and leave the other fields empty.
    series = item.get("series") or {}
    at = (
        series.get("lastObservedTime")
        or item.get("lastTimestamp")
        or item.get("eventTime")
        or item["metadata"].get("creationTimestamp")
    )
    return PodEvent(
        pod=str(item["involvedObject"]["name"]),
        reason=str(item.get("reason") or ""),
        message=str(item.get("message") or ""),
        is_warning=item.get("type") == "Warning",
        count=int(series.get("count") or item.get("count") or 1),
        at=parse_time(at),
    )
