"""Requests that wait longer than they are executed: larger batches, or more instances, and fewer replicas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from deployments.advice.domain import queueing
from deployments.advice.domain.advice import (
    Proposal,
    Risk,
    Saving,
    dollars,
    limit_saving,
    per_month,
    rate,
)
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.domain.facts import DeploymentFacts, busiest
from deployments.advice.domain.queueing import QueueTimes
from deployments.sizing.domain.demand import BUSY_PERCENT
from deployments.sizing.domain.memory import FileModel, Need, need_of_file
from deployments.spec.domain.serving_spec import ONNX_ENGINES
from fleet.gpus.domain.money import HOURS_PER_MONTH
from portal.core.definitions.counts import format_count

BATCHES: Final = "larger-batches"
INSTANCES: Final = "more-instances"
# Batches are limited by their largest size where they are this full on average.
_FULL: Final = 0.8
_MOST_INSTANCES: Final = 16
_TIMES: Final = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Facts for both kinds of advice. `busy` is the GPU time of the busiest hour, in replicas."""

    price: Decimal
    queue: QueueTimes
    need: Need
    file: FileModel
    busy: float


def decide_batches(facts: DeploymentFacts) -> Saving | None:
    """Advise larger batches on fewer replicas. Items that wait now are assumed to join the batch.

    The time of a larger batch was not measured: each item after the first is assumed to take half of the first
    one's time.
    """
    known = _known(facts)
    largest = _largest_batch(facts, known.queue) if known else 0
    if known is None or not largest:
        return None
    now, then = known.queue.batch_items, _batch_then(known.queue, largest)
    needed = _replicas(known.busy * _time_of_item(then) / _time_of_item(now))
    least = need_of_file(known.file, instances=facts.spec.instances_per_gpu).mib_on(1)
    mib = max(known.need.mib_on(1), least)
    if then <= now or needed >= facts.spec.min_replicas or mib > facts.memory_mib:
        return None
    batching = facts.spec.batching
    # Off: within the size that was chosen. On and full: up to that of the version.
    size = 0 if batching.is_dynamic else batching.max_batch_size
    changed = batching.replace(is_dynamic=True, max_batch_size=size)
    verb = "Allow larger batches" if batching.is_dynamic else "Turn on dynamic batching"
    return _saving(
        facts,
        known,
        needed,
        message=verb,
        settings={"batching": changed.model_dump(mode="json")},
        evidence=(
            EvidenceLine("New batch size", f"{then} of at most {largest}"),
            EvidenceLine("Busiest hour", f"GPU time of {known.busy:.2f} replicas"),
            EvidenceLine("GPU memory needed", f"{mib:,} of {facts.memory_mib:,} MiB"),
        ),
        why=f"{known.busy:.2f} busy replicas {_TIMES} {_time_of_item(then):.2f} ÷ {_time_of_item(now):.2f} "
        f"of the time of an item ÷ {BUSY_PERCENT}% = {format_count(needed, 'replica')}",
        risk_reason="How fast this model runs in batches was not measured: each item after the first is "
        "assumed to take half the time. The canary's guards compare both.",
    )


def decide_instances(facts: DeploymentFacts) -> Saving | None:
    """Advise running the present number of instances on fewer GPUs, if these have the time and the memory."""
    known = _known(facts)
    if known is None or decide_batches(facts) is not None:
        return None
    now, each = facts.spec.min_replicas, facts.spec.instances_per_gpu
    needed = _replicas(known.busy)
    instances = math.ceil(now * each / needed)
    more = (instances - each) * (known.file.weights_mib + known.file.activations_mib)
    mib = known.need.mib_on(1) + more
    if needed >= now or instances > _MOST_INSTANCES or mib > facts.memory_mib:
        return None
    return _saving(
        facts,
        known,
        needed,
        message=f"Run {format_count(instances, 'instance')} on each GPU instead of {each}",
        settings={"instances_per_gpu": instances},
        evidence=(
            EvidenceLine("New instances", f"{needed * instances:,} instead of {now * each:,}"),
            EvidenceLine("Busiest hour", f"GPU time of {known.busy:.2f} replicas"),
            EvidenceLine("GPU memory needed", f"{mib:,} of {facts.memory_mib:,} MiB"),
        ),
        why=f"{known.busy:.2f} busy replicas ÷ {BUSY_PERCENT}% = {format_count(needed, 'replica')}",
        risk_reason="Instances of one GPU slow each other down. The canary's guards compare both.",
    )


def _known(facts: DeploymentFacts) -> _Known | None:
    """Collect the facts for both kinds of advice; counters cover only the first model. None if requests do not wait
    long, the deployment is out of scope or a fact is missing.
    """
    spec, queue = facts.spec, queueing.measure(facts)
    if spec.engine not in ONNX_ENGINES or spec.additional_models or spec.triton.sequence:
        return None
    if spec.min_replicas < 2 or spec.nodes > 1 or queue is None or not queue.is_long:
        return None
    if facts.replica_amount is None or facts.need is None or facts.file is None:
        return None
    if not facts.runs_always:
        return None
    return _Known(
        price=facts.replica_amount,
        queue=queue,
        need=facts.need,
        file=facts.file,
        busy=busiest(facts.last_week()),
    )


def _largest_batch(facts: DeploymentFacts, queue: QueueTimes) -> int:
    """Return the largest batch that a change of the settings allows. 0 if it would allow no larger batches."""
    batching, of_version = facts.spec.batching, facts.max_batch_size
    chosen = batching.max_batch_size or of_version
    if not batching.is_dynamic:
        return chosen
    is_full = chosen < of_version and queue.batch_items >= chosen * _FULL
    return of_version if is_full else 0


def _batch_then(queue: QueueTimes, largest: int) -> int:
    return min(largest, int(queue.batch_items * (1 + queue.ratio)))


def _time_of_item(batch: float) -> float:
    """Return the time per item in a batch, where 1 is the time of an item alone: (1 + (batch - 1) / 2) / batch."""
    return (batch + 1) / (2 * batch)


def _replicas(busy: float) -> int:
    # Rounded, so that 1.4 / 0.7 are two.
    return max(1, math.ceil(round(busy * 100 / BUSY_PERCENT, 6)))


def _saving(
    facts: DeploymentFacts,
    known: _Known,
    needed: int,
    *,
    message: str,
    settings: dict[str, Any],
    evidence: tuple[EvidenceLine, ...],
    why: str,
    risk_reason: str,
) -> Saving:
    now, queue = facts.spec.min_replicas, known.queue
    saving = limit_saving(per_month(known.price * (now - needed)), cost=facts.month_amount)
    most = facts.spec.max_replicas if facts.spec.max_replicas > now else needed
    share = queue.wait_us / (queue.wait_us + queue.compute_us)
    return Saving(
        message=f"{message} and run {format_count(needed, 'replica')} instead of {now}: "
        f"a request waits {queue.wait_us / 1000:,.1f} ms and is executed in {queue.compute_us / 1000:,.1f} ms.",
        evidence=(
            EvidenceLine("Waiting, 7 days", f"{share * 100:.0f}% of a request's time in Triton"),
            EvidenceLine("Compute per request", f"{queue.compute_us / 1000:,.1f} ms"),
            EvidenceLine("Mean batch size now", f"{queue.batch_items:.1f}"),
            *evidence,
        ),
        cost_amount=facts.month_amount,
        saving_amount=saving,
        formula=f"{why}; ({now} \N{MINUS SIGN} {needed}) {_TIMES} {rate(known.price)} {_TIMES} {HOURS_PER_MONTH} h "
        f"= {dollars(saving)}",
        risk=Risk.HIGH if facts.is_production and needed == 1 else Risk.MEDIUM,
        risk_reason=risk_reason if needed > 1 else f"{risk_reason} One replica is left.",
        proposal=Proposal(
            kind="canary",
            settings={**settings, "min_replicas": needed, "max_replicas": max(needed, most)},
        ),
    )
