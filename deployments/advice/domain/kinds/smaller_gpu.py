"""The three ways to pay for less GPU: a MIG slice, a shared GPU, another instance type.

Each takes the best choice of its sort from the adviser's own ranking, which knows the memory that the
model needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

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
from deployments.advice.domain.facts import DeploymentFacts, busiest, mean_utilisation
from deployments.advice.domain.kinds.fewer_replicas import UNUSED_BELOW
from deployments.sizing.domain.demand import BUSY_PERCENT
from deployments.sizing.domain.ranking import Choice, ShareKind
from fleet.gpus.domain.money import HOURS_PER_MONTH
from portal.core.definitions.figures import format_percent

MIG: Final = "mig-slice"
SHARED: Final = "shared-gpu"
INSTANCE: Final = "cheaper-instance"
# Of the 7 compute slices of a GPU.
_COMPUTE: Final = re.compile(r"mig-(\d)g\.")
_SORTS: Final = {
    MIG: (ShareKind.MIG,),
    SHARED: (ShareKind.SHARED, ShareKind.MPS),
    INSTANCE: (ShareKind.WHOLE,),
}
_RISKS: Final = {
    MIG: (Risk.MEDIUM, "A slice is isolated but slower. The canary's guards compare both."),
    SHARED: (Risk.HIGH, "Other pods share the GPU's memory and time without isolation."),
    INSTANCE: (
        Risk.MEDIUM,
        "The speed of this GPU was not measured with this model. The canary's guards compare both.",
    ),
}


def decide_mig(facts: DeploymentFacts) -> Saving | None:
    return _decide(facts, MIG, lambda choice: _slice_is_enough(facts, choice))


def decide_shared(facts: DeploymentFacts) -> Saving | None:
    return _decide(facts, SHARED, lambda _: _is_underused(facts))


def decide_instance(facts: DeploymentFacts) -> Saving | None:
    """Advise a whole GPU of another type. Its speed is not known, so only deployments with much to spare get this
    advice.
    """
    return _decide(facts, INSTANCE, lambda _: _is_underused(facts))


def _decide(
    facts: DeploymentFacts, code: str, is_enough: Callable[[Choice], bool]
) -> Saving | None:
    price, need = facts.replica_amount, facts.need
    utilisation = mean_utilisation(facts.last_week())
    if price is None or need is None or utilisation is None or facts.spec.nodes > 1:
        return None
    if len(facts.spec.instance_types) > 1:
        return None  # What it runs on now, and costs, changes from pod to pod.
    choice = _cheapest(facts, _SORTS[code], is_enough)
    if choice is None or choice.offer.usd_per_hour_amount is None or not facts.runs_always:
        return None
    each, replicas = choice.offer.usd_per_hour_amount, facts.spec.min_replicas
    saving = limit_saving(per_month((price - each) * replicas), cost=facts.month_amount)
    offer, (risk, reason) = choice.offer, _RISKS[code]
    return Saving(
        message=f"Run on {offer.title} ({offer.instance_type}): the model needs "
        f"{choice.needed_mib:,} MiB and has {facts.memory_mib:,} MiB now.",
        evidence=(
            EvidenceLine("GPU utilisation, 7 days", format_percent(utilisation)),
            EvidenceLine("Memory needed", f"{choice.needed_mib:,} MiB"),
            EvidenceLine("Memory of the new share", f"{offer.memory_mib:,} MiB"),
            EvidenceLine("Now", f"{rate(price)} a replica"),
            EvidenceLine("Then", f"{rate(each)} a replica"),
        ),
        cost_amount=facts.month_amount,
        saving_amount=saving,
        formula=f"({rate(price)} \N{MINUS SIGN} {rate(each)}) \N{MULTIPLICATION SIGN} {replicas} \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h = {dollars(saving)}",
        risk=risk,
        risk_reason=reason,
        proposal=Proposal(
            kind="canary",
            settings={
                "instance_type": offer.instance_type,
                "gpu_resource": offer.gpu_resource,
                "gpus": offer.gpus,
            },
        ),
    )


def _cheapest(
    facts: DeploymentFacts, kinds: Sequence[ShareKind], is_enough: Callable[[Choice], bool]
) -> Choice | None:
    """Return the cheapest choice of the ranking that has the memory and free capacity, and costs less than now."""
    now = (facts.spec.instance_type, facts.spec.gpu_resource, facts.spec.gpus)
    fitting = [
        choice
        for choice in facts.choices
        if choice.offer.kind in kinds and _has_room(facts, choice)
        # A spec takes one slice or shared GPU for a replica.
        if choice.offer.kind is ShareKind.WHOLE or choice.offer.gpus == 1
        if (choice.offer.instance_type, choice.offer.gpu_resource, choice.offer.gpus) != now
        if _is_free(facts, choice) and is_enough(choice)
    ]
    priced = [(c.offer.usd_per_hour_amount, n, c) for n, c in enumerate(fitting)]
    cheaper = [
        (amount, n, c)
        for amount, n, c in priced
        if amount is not None and amount < (facts.replica_amount or Decimal(0))
    ]
    return min(cheaper, key=lambda each: each[:2])[2] if cheaper else None


def _has_room(facts: DeploymentFacts, choice: Choice) -> bool:
    offer, need = choice.offer, facts.need
    return need is not None and need.has_room(gpus=offer.gpus, memory_mib=offer.memory_mib)


def _is_free(facts: DeploymentFacts, choice: Choice) -> bool:
    free = choice.offer.free_replicas
    return free is None or free >= facts.spec.min_replicas or choice.offer.is_started


def _is_underused(facts: DeploymentFacts) -> bool:
    utilisation = mean_utilisation(facts.last_week())
    return utilisation is not None and utilisation < UNUSED_BELOW


def _slice_is_enough(facts: DeploymentFacts, choice: Choice) -> bool:
    """Whether the busiest hour fits the compute slices at 70% utilisation."""
    profile = _COMPUTE.search(choice.offer.gpu_resource)
    if profile is None or not _is_underused(facts) or facts.spec.gpu_resource != "nvidia.com/gpu":
        return False
    each = busiest(facts.last_week()) / max(1, facts.spec.min_replicas)
    return each * 7 / int(profile.group(1)) <= BUSY_PERCENT / 100
