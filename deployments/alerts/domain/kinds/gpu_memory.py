"""The stable revision came close to the memory of its GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict

KIND: Final = AlertKind(
    code="gpu_memory",
    label="GPU memory",
    advice="Request a GPU with more memory, a smaller batch or fewer instances.",
)
OPENS_AT_PERCENT: Final = 95


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The peak memory of a revision on a GPU of its own, in MiB."""

    peak_mib: int
    gpu_mib: int


def decide(facts: MemoryFacts | None) -> AlertVerdict:
    """Decide on the peak memory. A peak never falls, so the alert ends with the revision."""
    if facts is None or facts.gpu_mib <= 0:
        return AlertVerdict(None)
    percent = 100 * facts.peak_mib / facts.gpu_mib
    if percent < OPENS_AT_PERCENT:
        return AlertVerdict(is_firing=False)
    return AlertVerdict(
        is_firing=True,
        message=f"It has used {facts.peak_mib:,} of {facts.gpu_mib:,} MiB ({percent:.0f}%): a larger request may fail.",
    )
