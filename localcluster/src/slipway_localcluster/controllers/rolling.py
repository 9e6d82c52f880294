"""The next number of pods of each ReplicaSet of a Deployment: pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor

from slipway_localcluster.errors import JsonObject


@dataclass(frozen=True, slots=True)
class Strategy:
    """Limits of an update, as counts of pods; Recreate ends the old pods before the new start."""

    max_surge: int
    max_unavailable: int
    is_recreate: bool = False


@dataclass(frozen=True, slots=True)
class SetSize:
    """Numbers of pods of one ReplicaSet: desired, existing, available."""

    name: str
    desired: int
    existing: int
    available: int


def strategy_of(deployment: JsonObject) -> Strategy:
    """Return surge and unavailable pods, with percentages as in Kubernetes: surge rounds up, unavailable down,
    never both zero.
    """
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
    count = replicas * int(text[:-1]) / 100
    return ceil(count) if is_rounded_up else floor(count)


def next_sizes(
    replicas: int, strategy: Strategy, new: SetSize, old: tuple[SetSize, ...]
) -> Mapping[str, int]:
    """Return the sizes after one step: scale the new set up as far as surge allows, then the old ones down.

    `old` is oldest first. Unavailable pods are removed first.
    """
    if strategy.is_recreate:
        waits = any(item.desired or item.existing for item in old)
        return {new.name: new.desired if waits else replicas} | {item.name: 0 for item in old}
    total = new.desired + sum(max(item.desired, item.existing) for item in old)
    surge = max(replicas + strategy.max_surge - total, 0)
    grown = replicas if new.desired >= replicas else min(replicas, new.desired + surge)
    sizes = {new.name: grown}
    serving = new.available + sum(min(item.available, item.desired) for item in old)
    spare = max(serving - (replicas - strategy.max_unavailable), 0)
    for item in old:
        idle = max(item.desired - item.available, 0)
        removed = min(item.desired - idle, spare)
        spare -= removed
        sizes[item.name] = item.desired - idle - removed
    return sizes
