"""How long the blocks of a rollout's slow lane are: by what the stable revision did in the hour before."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain.betting import blocks
from deployments.guards.domain.betting.blocks import BlockLengths, Slot
from deployments.models import Revision
from fleet.telemetry.domain.counters import Counters
from fleet.telemetry.selectors import blocks as telemetry_blocks

_HISTORY: Final = timedelta(hours=1)


def before(stable: Revision, at: datetime) -> BlockLengths:
    """Of a step that begins then. Reads every reading of the hour: once a step, then they are stored."""
    deployment = stable.deployment
    series = telemetry_blocks.slots(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        name=stable.workload_name,
        since=at - _HISTORY,
        until=at,
        seconds=blocks.SLOT_SECONDS,
    )
    return blocks.choose([[_slot_of(counters) for counters in of_pod] for of_pod in series])


def _slot_of(counters: Counters) -> Slot:
    return Slot(
        requests=counters.request_success + counters.request_failure,
        failures=counters.request_failure,
        timed=counters.request_success,
        duration_us=counters.request_duration_us,
    )
