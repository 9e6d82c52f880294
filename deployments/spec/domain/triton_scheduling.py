"""Settings of Triton for queueing requests and forming batches, beyond dynamic batching itself."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from deployments.spec.domain import triton_values
from portal.core.definitions import Definition, setting

MAX_PRIORITIES: Final = triton_values.MAX_LEVELS
_MAX_US: Final = 3_600_000_000


class Queue(Definition):
    """The queue of requests that wait for a batch: how many, how long, and which first."""

    max_size: Annotated[
        int,
        setting(
            "Queue size",
            "Further requests are rejected. Leave empty for no limit.",
            is_empty_zero=True,
            ge=0,
            le=1_000_000,
            fix="Use 0 (no limit) to 1000000 requests.",
        ),
    ] = 0
    timeout_us: Annotated[
        int,
        setting(
            "Queue timeout",
            "Longest wait in the queue. Leave empty for no limit.",
            unit="µs",
            is_empty_zero=True,
            ge=0,
            le=_MAX_US,
            fix=f"Use 0 (no limit) to {_MAX_US} µs.",
        ),
    ] = 0
    timeout_action: Annotated[
        Literal["reject", "delay"],
        setting("After the timeout", "Reject the request, or run it once nothing else waits."),
    ] = "reject"
    allow_timeout_override: Annotated[
        bool, setting("Timeout per request", "A request may ask for a shorter timeout.")
    ] = False
    priority_levels: Annotated[
        int,
        setting(
            "Priority levels",
            "1 is the highest. Leave empty for no priorities.",
            is_empty_zero=True,
            ge=0,
            le=MAX_PRIORITIES,
            fix=f"Use 0 (none) to {MAX_PRIORITIES} levels.",
        ),
    ] = 0
    default_priority_level: Annotated[
        int,
        setting(
            "Default priority",
            "For requests without a priority.",
            is_empty_zero=True,
            ge=0,
            le=MAX_PRIORITIES,
            fix="Use 1 to priority_levels.",
        ),
    ] = 0
    priority_max_sizes: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_level_values),
        setting(
            "Queue size per level",
            "One for each level, highest first, for example 64, 0.",
            fix=f"Use one number from 0 to 1000000000 for each of up to {MAX_PRIORITIES} levels.",
        ),
    ] = ()
    priority_timeouts_us: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_level_values),
        setting(
            "Timeout per level",
            "In µs, one for each level, highest first.",
            fix=f"Use one number from 0 to 1000000000 for each of up to {MAX_PRIORITIES} levels.",
        ),
    ] = ()


class Sequence(Definition):
    """Sequence batching: requests with one correlation id reach the same instance, in order."""

    strategy: Annotated[
        Literal["direct", "oldest"],
        setting(
            "Strategy",
            "Direct: a batch slot for each sequence. Oldest: dynamic batches of sequences.",
        ),
    ] = "direct"
    max_idle_us: Annotated[
        int,
        setting(
            "Idle time",
            "A sequence ends after this long without requests.",
            unit="µs",
            ge=1,
            le=_MAX_US,
            fix=f"Use 1 to {_MAX_US} µs.",
        ),
    ] = 1_000_000
    max_queue_delay_us: Annotated[
        int,
        setting(
            "Sequence queue delay",
            "Max wait to fill a batch.",
            unit="µs",
            ge=0,
            le=1_000_000,
            fix="Use 0 to 1000000 microseconds.",
        ),
    ] = 0
    minimum_slot_utilization_percent: Annotated[
        int,
        setting(
            "Slot utilisation",
            "Direct: share of slots that ends the wait.",
            unit="%",
            ge=0,
            le=100,
            fix="Use 0 to 100.",
        ),
    ] = 0
    max_candidate_sequences: Annotated[
        int,
        setting(
            "Candidate sequences",
            "Oldest: sequences that run at a time, for each instance.",
            ge=1,
            le=100_000,
            fix="Use 1 to 100000 sequences.",
        ),
    ] = 16
    preferred_batch_sizes: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_batch_sizes),
        setting(
            "Preferred sizes",
            "Oldest: for example 4, 8.",
            fix="Use at most eight sizes from 1 to 4096.",
        ),
    ] = ()
    start_input: Annotated[
        str,
        setting(
            "Start input", "Input that is 1 in the first request of a sequence.", max_length=200
        ),
    ] = ""
    ready_input: Annotated[
        str, setting("Ready input", "Input that is 1 where a slot has a request.", max_length=200)
    ] = ""
    end_input: Annotated[
        str,
        setting("End input", "Input that is 1 in the last request of a sequence.", max_length=200),
    ] = ""
    correlation_input: Annotated[
        str, setting("Correlation input", "Input that takes the correlation id.", max_length=200)
    ] = ""
    states: Annotated[
        tuple[str, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_pairs),
        setting(
            "State",
            "State that Triton keeps between requests, as input=output. Starts with zeros.",
            fix="Use input=output, for example h_in=h_out.",
            **triton_values.PAIRS,
        ),
    ] = ()

    @property
    def controls(self) -> dict[str, str]:
        """The inputs by kind of control, without those that are not set."""
        inputs = {
            "CONTROL_SEQUENCE_START": self.start_input,
            "CONTROL_SEQUENCE_READY": self.ready_input,
            "CONTROL_SEQUENCE_END": self.end_input,
            "CONTROL_SEQUENCE_CORRID": self.correlation_input,
        }
        return {kind: name for kind, name in inputs.items() if name}
