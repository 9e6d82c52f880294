"""Which taints, of nodes and of devices, keep a pod or a claim away, and what each pod tolerates without being told to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeVar

from fleet.gpus.domain import capacity_types, neuron, shares

# PreferNoSchedule keeps nothing away.
EFFECTS: Final = ("NoSchedule", "NoExecute")


class TaintLike(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def effect(self) -> str: ...


_T = TypeVar("_T", bound=TaintLike)


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of one key and effect. `value` None tolerates every value."""

    key: str
    effect: str
    value: str | None = None

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, str]) -> Self:
        """Read a toleration from the manifest of a pod or a ResourceClaim."""
        return cls(manifest["key"], manifest["effect"], manifest.get("value"))

    def manifest(self) -> dict[str, str]:
        if self.value is None:
            return {"key": self.key, "operator": "Exists", "effect": self.effect}
        return {
            "key": self.key,
            "operator": "Equal",
            "value": self.value,
            "effect": self.effect,
        }

    def tolerates(self, taint: TaintLike) -> bool:
        return (self.key, self.effect) == (taint.key, taint.effect) and self.value in (
            None,
            taint.value,
        )


GPU: Final = Toleration(shares.WHOLE, "NoSchedule")
_NEURON: Final = Toleration(neuron.DEVICE, "NoSchedule")


def list_pod_tolerations(
    gpu_resource: str,
    capacity: str,
    spot_labels: Iterable[tuple[str, str]] = capacity_types.EVERY_SPOT_LABEL,
) -> tuple[Toleration, ...]:
    """Return the tolerations of every pod that requests GPUs on nodes of this capacity type. A pod that may run on
    any tolerates no taint of spot nodes. `spot_labels` are those of the cluster's provisioner.
    """
    of_nodes = tolerate_spot(spot_labels) if capacity == capacity_types.SPOT else ()
    return (tolerate_accelerator(gpu_resource), *of_nodes)


def tolerate_accelerator(gpu_resource: str) -> Toleration:
    """Return the toleration of every pod that requests GPUs, for nodes that are kept for such pods."""
    return _NEURON if gpu_resource == neuron.DEVICE else GPU


def tolerate_spot(spot_labels: Iterable[tuple[str, str]]) -> tuple[Toleration, ...]:
    """Return the tolerations of pods that run on spot nodes. Taints of these have the names and values of labels."""
    return tuple(Toleration(key, "NoSchedule", value) for key, value in spot_labels)


def list_untolerated(taints: Iterable[_T], tolerations: Sequence[Toleration]) -> tuple[_T, ...]:
    """Return the taints that keep a pod with these tolerations away."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in EFFECTS and not any(one.tolerates(taint) for one in tolerations)
    )
