"""The time that requests wait for the model, compared with the time that it executes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.advice.domain.facts import DeploymentFacts

# A request waits at least as long as it is executed.
LONG_RATIO: Final = 1.0
# Triton needs some of this for itself, and nobody notices it.
LEAST_WAIT_US: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTimes:
    """The mean times of a week for one request, in microseconds, without the delay in which a batch is left to
    fill.

    `batch_items` are the items of one execution.
    """

    wait_us: float
    compute_us: float
    batch_items: float

    @property
    def ratio(self) -> float:
        """The number of executions that pass while a request waits."""
        return self.wait_us / self.compute_us

    @property
    def is_long(self) -> bool:
        return self.wait_us >= LEAST_WAIT_US and self.ratio >= LONG_RATIO


def measure(facts: DeploymentFacts) -> QueueTimes | None:
    """Measure the mean queue and compute times of the last week. None if nothing was executed, or the server does
    not count executions.
    """
    known = [hour for hour in facts.last_week() if hour.is_known]
    served = sum(hour.served for hour in known)
    executions = sum(hour.executions for hour in known)
    compute_us = sum(hour.compute_us for hour in known)
    if not served or not executions or not compute_us:
        return None
    chosen_us = facts.spec.batching.max_queue_delay_us
    return QueueTimes(
        wait_us=max(0.0, sum(hour.queue_us for hour in known) / served - chosen_us),
        compute_us=compute_us / served,
        batch_items=max(1.0, sum(hour.inferences for hour in known) / executions),
    )


def is_long(facts: DeploymentFacts) -> bool:
    queue = measure(facts)
    return queue is not None and queue.is_long
