"""Kubernetes events of pods, old ones and those of events.k8s.io."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from deployments.delivery.domain.pod_events import PodEvent, list_events


def event(pod: str, kind: str = "Pod", **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"creationTimestamp": "2026-11-29T08:00:00Z"},
        "involvedObject": {"kind": kind, "name": pod},
        **fields,
    }


def at(hour: int) -> datetime:
    return datetime(2026, 11, 29, hour, tzinfo=UTC)


def test_events_of_the_pods_come_newest_first() -> None:
    failed = event(
        "a",
        reason="BackOff",
        message="restarting",
        type="Warning",
        count=7,
        lastTimestamp="2026-11-29T09:00:00Z",
    )
    pulled = event(
        "a",
        reason="Pulled",
        note="",
        type="Normal",
        lastTimestamp=None,
        eventTime="2026-11-29T10:00:00.000000Z",
        series={"count": 3, "lastObservedTime": "2026-11-29T11:00:00.000000Z"},
    )

    events = list_events([failed, event("b"), event("a", kind="Node"), event("a"), pulled], {"a"})

    assert events == [
        PodEvent("a", "Pulled", "", is_warning=False, count=3, at=at(11)),
        PodEvent("a", "BackOff", "restarting", is_warning=True, count=7, at=at(9)),
        PodEvent("a", "", "", is_warning=False, count=1, at=at(8)),
    ]
