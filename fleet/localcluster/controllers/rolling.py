"""How many pods each ReplicaSet of a Deployment may have next: pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor

from fleet.localcluster.errors import JsonObject


@dataclass(frozen=True, slots=True)
class Strategy:
    """Limits of an update, as counts of pods; Recreate ends the old pods before the new start."""

    max_surge: int
    max_unavailable: int
    is_recreate: bool = False


@dataclass(frozen=True, slots=True)
class SetSize:
    """One ReplicaSet: pods asked for, pods that exist, and pods that serve."""

    name: str
    desired: int
    existing: int
    available: int


def strategy_of(deployment: JsonObject) -> Strategy:
    """Percentages as in Kubernetes: surge rounds up, unavailable down, never both zero."""
    spec = deployment["spec"]
    replicas = int(spec.get("replicas", 1))
    stated = spec.get("strategy") or {}
    if stated.get("type") == "Recreate":
        return Strategy(0, replicas, is_recreate=True)
    limits = stated.get("rollingUpdate") or {}
    surge = _count(limits.get("maxSurge", "25%"), replicas, is_rounded_up=True)
    unavailable = _count(limits.get("maxUnavailable", "25%"), replicas, is_rounded_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Strategy(surge, min(unavailable, max(replicas, 1)))


def _count(value: int | str, replicas: int, *, is_rounded_up: bool) -> int:
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    share = replicas * int(text[:-1]) / 100
    return ceil(share) if is_rounded_up else floor(share)


def next_sizes(
    replicas: int, strategy: Strategy, new: SetSize, old: tuple[SetSize, ...]
) -> Mapping[str, int]:
    """One step: grow the new set as far as surge allows, then shrink the old ones.

    `old` is oldest first. Pods that do not serve are the first to go.
    """
    if strategy.is_recreate:
        waits = any(item.desired or item.existing for item in old)
        return {new.name: new.desired if waits else replicas} | {item.name: 0 for item in old}
    total = new.desired + sum(max(item.desired, item.existing) for item in old)
    room = max(replicas + strategy.max_surge - total, 0)
    grown = replicas if new.desired >= replicas else min(replicas, new.desired + room)
    sizes = {new.name: grown}
    serving = new.available + sum(min(item.available, item.desired) for item in old)
    spare = max(serving - (replicas - strategy.max_unavailable), 0)
    for item in old:
        idle = max(item.desired - item.available, 0)
        removed = min(item.desired - idle, spare)
        spare -= removed
        sizes[item.name] = item.desired - idle - removed
    return sizes
