"""Rank the GPU resources that a model can run on, with the reasons why others are rejected.

The cheapest choice with free capacity comes first; isolated GPU memory breaks ties. A choice over
the quota or a binding budget is listed as rejected; one above another budget is ranked: approvers decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Final

from deployments.sizing.domain.demand import Demand, TeamLimits
from deployments.sizing.domain.memory import Need
from fleet.gpus.domain import neuron, shares
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH
from portal.core.definitions.figures import format_money


class ShareKind(StrEnum):
    WHOLE = "whole"
    MIG = "mig"
    MPS = "mps"
    SHARED = "time-slice"


# Other pods on the GPU can exhaust its memory or crash it.
_NOT_ISOLATED: Final = (ShareKind.SHARED, ShareKind.MPS)


class RejectionReason(StrEnum):
    """The reasons for which a choice is rejected."""

    TOO_SMALL = "too-little-memory"
    NOT_HERE = "not-on-this-cluster"
    NOT_OFFERED = "share-not-offered"
    SPLIT = "cannot-be-split"
    QUOTA = "quota"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A GPU resource to request. `memory_mib` is for each GPU or slice, the price for one replica.

    `missing` is the reason why this cluster does not have it, or None; `free_replicas` None means
    unknown.
    """

    instance_type: str
    gpu_name: str
    gpu_resource: str
    gpus: int
    memory_mib: int
    kind: ShareKind
    usd_per_hour_amount: Decimal | None
    free_replicas: int | None = None
    # A node has to start first.
    is_started: bool = False
    missing: RejectionReason | None = None
    missing_message: str = ""
    # Of a DRA driver: pods claim it instead of requesting the resource.
    is_claimed: bool = False

    @property
    def is_neuron(self) -> bool:
        return self.gpu_resource == neuron.DEVICE

    @property
    def title(self) -> str:
        if self.kind is ShareKind.MIG:
            return f"{self.gpu_name}, slice {self.gpu_resource.removeprefix('nvidia.com/mig-')}"
        slices = {ShareKind.SHARED: ", time-sliced", ShareKind.MPS: ", shared by MPS"}
        return f"{self.gpus} \N{MULTIPLICATION SIGN} {self.gpu_name}{slices.get(self.kind, '')}"


@dataclass(frozen=True, slots=True)
class OfferRefusal:
    reason: RejectionReason
    message: str

    @property
    def is_final(self) -> bool:
        return self.reason not in (RejectionReason.QUOTA, RejectionReason.BUDGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A ranked choice of GPUs. It needs `needed_mib` of `offer.memory_mib` on each GPU; `explanation` justifies
    the rank.
    """

    offer: Offer
    needed_mib: int
    headroom_percent: int
    replicas: int
    month_amount: Decimal | None
    refusals: tuple[OfferRefusal, ...] = ()
    is_recommended: bool = False
    explanation: str = ""
    # Empty unless the month costs more than is left of a budget that is not binding.
    budget_note: str = ""
    # Other ranked instance types with as many units of the same GPU resource, in the order of the ranking.
    also_on: tuple[str, ...] = ()

    @property
    def is_rejected(self) -> bool:
        return bool(self.refusals)

    @property
    def can_choose(self) -> bool:
        return not any(refusal.is_final for refusal in self.refusals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    need: Need
    demand: Demand
    ranked: tuple[Choice, ...]
    rejected: tuple[Choice, ...]

    @property
    def recommended(self) -> Choice | None:
        return self.ranked[0] if self.ranked else None


def advise(
    *, need: Need, offers: Sequence[Offer], demand: Demand, limits: TeamLimits | None = None
) -> Advice:
    limits = limits or TeamLimits()
    choices = sorted((_evaluate(need, offer, demand, limits) for offer in offers), key=_rank)
    fitting = [choice for choice in choices if not choice.is_rejected]
    rejected = [choice for choice in choices if choice.is_rejected]
    return Advice(
        need=need,
        demand=demand,
        ranked=tuple(_with_others(_explain(choice, fitting), fitting) for choice in fitting),
        rejected=tuple(sorted(rejected, key=_rejection_rank)),
    )


def _evaluate(need: Need, offer: Offer, demand: Demand, limits: TeamLimits) -> Choice:
    needed = need.mib_on(offer.gpus)
    usable = offer.memory_mib * need.usable_percent // 100
    month = None
    if offer.usd_per_hour_amount is not None:
        hourly = offer.usd_per_hour_amount * demand.replicas
        month = (hourly * HOURS_PER_MONTH).quantize(CENT)
    choice = Choice(
        offer=offer,
        needed_mib=needed,
        headroom_percent=max(0, (usable - needed) * 100 // usable) if usable else 0,
        replicas=demand.replicas,
        month_amount=month,
    )
    over_budget = _describe_over_budget(choice, limits)
    refusals = _refusals(choice, need, demand, limits)
    if over_budget and limits.is_budget_binding:
        message = f"{over_budget}; the budget is binding"
        refusals.append(OfferRefusal(RejectionReason.BUDGET, message))
    elif over_budget:
        choice = replace(choice, budget_note=f"{over_budget}; an approver decides")
    return replace(choice, refusals=tuple(refusals))


def _refusals(choice: Choice, need: Need, demand: Demand, limits: TeamLimits) -> list[OfferRefusal]:
    offer, refusals = choice.offer, []
    if offer.missing is not None:
        refusals.append(OfferRefusal(offer.missing, offer.missing_message))
    if not need.can_use(offer.gpus):
        plural = "s" if offer.gpus != 1 else ""
        message = (
            f"{offer.gpus} GPU{plural} can't be divided among {need.copies} copies of the model"
        )
        refusals.append(OfferRefusal(RejectionReason.SPLIT, message))
    elif offer.memory_mib and not need.has_room(gpus=offer.gpus, memory_mib=offer.memory_mib):
        refusals.append(OfferRefusal(*_too_small(choice, need)))
    refusals += _over_quota(choice, demand, limits)
    return refusals


def _too_small(choice: Choice, need: Need) -> tuple[RejectionReason, str]:
    offer = choice.offer
    part = f" ({need.usable_percent}% usable)" if need.usable_percent < 100 else ""
    message = f"has {offer.memory_mib:,} MiB{part}, needs {choice.needed_mib:,} MiB"
    if offer.gpus > 1 and not need.can_split:
        return RejectionReason.SPLIT, f"each GPU {message}: this model can't be split across GPUs"
    prefix = "each GPU " if offer.gpus > 1 else ""
    return RejectionReason.TOO_SMALL, f"{prefix}{message}"


def _over_quota(choice: Choice, demand: Demand, limits: TeamLimits) -> list[OfferRefusal]:
    gpus = choice.offer.gpus * max(choice.replicas, demand.max_replicas)
    quota_left = limits.quota_left_gpus
    if quota_left is None or gpus <= quota_left:
        return []
    needed = shares.format_count(gpus, neuron.DEVICE if choice.offer.is_neuron else shares.WHOLE)
    message = f"needs {needed}, {max(0, quota_left)} left in the team's quota"
    return [OfferRefusal(RejectionReason.QUOTA, message)]


def _describe_over_budget(choice: Choice, limits: TeamLimits) -> str:
    left = limits.budget_left_amount
    if left is None or choice.month_amount is None or choice.month_amount <= left:
        return ""
    return (
        f"{format_money(choice.month_amount)} a month, {format_money(max(Decimal(0), left))} left in the team's budget "
        "for a full month"
    )


def _rank(choice: Choice) -> tuple[bool, bool, bool, bool, Decimal, bool, int, str, int, bool]:
    """Order by budget, free capacity, known price, price, isolation and headroom; of equal ones what needs no claim first. Neuron devices follow all GPUs: whether
    a model's architecture compiles for them is not in its size.
    """
    offer = choice.offer
    return (
        offer.is_neuron,
        bool(choice.budget_note),
        offer.free_replicas is not None and offer.free_replicas < choice.replicas,
        choice.month_amount is None,
        choice.month_amount or Decimal(0),
        offer.kind in _NOT_ISOLATED,
        -choice.headroom_percent,
        offer.instance_type,
        offer.gpus,
        offer.is_claimed,
    )


def _rejection_rank(choice: Choice) -> tuple[bool, bool, int]:
    """Order by whether it can be requested, then by whether this cluster has it."""
    return (not choice.can_choose, choice.offer.missing is not None, len(choice.refusals))


def _explain(choice: Choice, fitting: Sequence[Choice]) -> Choice:
    if choice is (best := fitting[0]):
        gpu = " GPU" if fitting[-1].offer.is_neuron and not choice.offer.is_neuron else ""
        message = f"recommended: cheapest{gpu} with free capacity"
        if _is_waiting(choice):
            room = "a node" if choice.offer.is_started else "room"
            message = f"cheapest that fits; waits for {room}"
        elif choice.month_amount is None:
            message = "fits; price unknown"
        return replace(choice, is_recommended=True, explanation=_add_notes(choice, message))
    return replace(choice, explanation=_add_notes(choice, _compare(choice, best)))


def _compare(choice: Choice, best: Choice) -> str:
    if choice.month_amount is None or best.month_amount is None:
        return "fits; price unknown"
    difference = choice.month_amount - best.month_amount
    room = "a new node" if choice.offer.is_started else "room"
    waits = f"waits for {room}; " if _is_waiting(choice) and not _is_waiting(best) else ""
    if difference > 0:
        return f"{waits}{format_money(difference)} a month more than {best.offer.title}"
    if difference == 0:
        return f"{waits}same cost"
    return f"{waits}{format_money(-difference)} a month less"


def _add_notes(choice: Choice, message: str) -> str:
    return "; ".join(filter(None, [_note_isolation(choice, message), choice.budget_note]))


def _note_isolation(choice: Choice, message: str) -> str:
    if choice.offer.is_neuron:
        return f"{message}; only for architectures that the Neuron compiler supports"
    is_shared = choice.offer.kind in _NOT_ISOLATED
    return (
        f"{message}; GPU memory is shared with other pods without isolation"
        if is_shared
        else message
    )


def _with_others(choice: Choice, fitting: Sequence[Choice]) -> Choice:
    offer = choice.offer
    alike = [
        other.offer.instance_type
        for other in fitting
        if _request_of(other.offer) == _request_of(offer)
        and other.offer.instance_type != offer.instance_type
    ]
    return replace(choice, also_on=tuple(dict.fromkeys(alike)))


def _request_of(offer: Offer) -> tuple[str, int, bool]:
    return offer.gpu_resource, offer.gpus, offer.is_claimed


def _is_waiting(choice: Choice) -> bool:
    free = choice.offer.free_replicas
    return free is not None and free < choice.replicas
