"""GPU memory: the peak of a whole, unshared GPU (ADR 9). Allocated memory is a fact, not a sample."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, MeasuredFigure


def _value(_: Sums, facts: SideFacts) -> float | None:
    return facts.gpu_memory_gib


KIND: Final = CounterKind(
    name="gpu_memory",
    label="GPU memory",
    unit="GiB",
    source="whole GPU, peak",
    most=4096,
    not_compared="a peak grows with the time that a revision serves",
    is_measured_on_neuron=False,
    fact="gpu_memory_gib",
    value=_value,
    test=MeasuredFigure(
        missing="the GPU memory of the candidate is not measured",
        above="it used more GPU memory than the limit",
        within="it never used more than the limit",
    ),
)
