"""The lengths of the blocks of a rollout's slow lane, by what the stable revision did in the time before."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain.betting import blocks, bursts
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.slots import SLOT_SECONDS, Slot
from deployments.models import Revision
from fleet.telemetry.domain.counters import CounterSums
from fleet.telemetry.selectors import blocks as telemetry_blocks
from fleet.telemetry.selectors.current import WorkloadKey

_HISTORY: Final = timedelta(hours=1)
_MINUTES: Final = timedelta(minutes=bursts.MOST_MINUTES)


def before(stable: Revision, at: datetime, *, step_seconds: float = 0.0) -> BlockLengths:
    """Choose the lengths of blocks at `at`, when `step_seconds` of the step have passed: by every reading of
    the hour before, and by the minutes of the last hours. They are stored until they are chosen anew.
    """
    deployment = stable.deployment
    series = telemetry_blocks.slots(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        name=stable.workload_name,
        since=at - _HISTORY,
        until=at,
        seconds=SLOT_SECONDS,
    )
    key = WorkloadKey(deployment.cluster_id, deployment.namespace, stable.workload_name)
    minutes = telemetry_blocks.minutes(key, since=at - _MINUTES, until=at)
    return blocks.choose(
        [[_slot_of(counters) for counters in of_pod] for of_pod in series],
        [_slot_of(counters) for counters in minutes],
        step_seconds=step_seconds,
    )


def _slot_of(counters: CounterSums) -> Slot:
    return Slot(
        requests=counters.request_success + counters.request_failure,
        failures=counters.request_failure,
        timed=counters.request_success,
        duration_us=counters.request_duration_us,
    )
