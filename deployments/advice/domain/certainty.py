"""How sure the saving of an item of advice is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.advice.domain.evidence import DEMO_DATA, EvidenceLine
from deployments.advice.domain.kinds import long_queue, multi_model, smaller_gpu

# By kind: what the saving rests on that nobody measured. The others rest on readings and prices alone.
_ASSUMPTIONS: Final[Mapping[str, str]] = {
    long_queue.BATCHES: "The speed of larger batches was not measured.",
    long_queue.INSTANCES: "The speed of more instances on a GPU was not measured.",
    smaller_gpu.MIG: "The speed on a slice was not measured.",
    smaller_gpu.SHARED: "The speed on a shared GPU was not measured.",
    smaller_gpu.INSTANCE: "The speed on the other GPU was not measured.",
    multi_model.CODE: "The speed of several models on one GPU was not measured.",
}


@dataclass(frozen=True, slots=True)
class Certainty:
    is_measured: bool
    reason: str

    @property
    def label(self) -> str:
        return "measured" if self.is_measured else "estimated"


def find_certainty(kind: str, evidence: Sequence[EvidenceLine]) -> Certainty:
    """Return whether the saving follows from measurements alone, and why."""
    if any(line.name == DEMO_DATA for line in evidence):
        return Certainty(is_measured=False, reason="Some of the hours are demo data.")
    if kind in _ASSUMPTIONS:
        return Certainty(is_measured=False, reason=_ASSUMPTIONS[kind])
    return Certainty(is_measured=True, reason="From readings and prices of the last weeks.")
