"""What to run a model on: every way to ask for GPUs, ranked, and why each other one is rejected.

The first is the cheapest a month that is free now; walls between neighbours decide between equals.
A choice over the budget is told as rejected but may be asked for: that is the approver's decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Final

from deployments.sizing.domain.memory import Need

HOURS_PER_MONTH: Final = 730
# A replica that is busy more than this part of the time makes its callers queue.
BUSY_PERCENT: Final = 70
_CENT = Decimal("0.01")


class ShareKind(StrEnum):
    WHOLE = "whole"
    MIG = "mig"
    MPS = "mps"
    SHARED = "time-slice"


# A neighbour that takes too much memory, or crashes, is felt.
_WITHOUT_WALL: Final = (ShareKind.SHARED, ShareKind.MPS)


class Why(StrEnum):
    """Why a choice is rejected."""

    TOO_SMALL = "too-little-memory"
    NOT_HERE = "not-on-this-cluster"
    NOT_OFFERED = "share-not-offered"
    SPLIT = "cannot-be-split"
    QUOTA = "quota"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to ask. `memory_mib` is of each GPU or slice; price and room are of one replica.

    `missing` says why this cluster cannot give it, empty when it can; `free_replicas` None is not
    known.
    """

    instance_type: str
    gpu_name: str
    gpu_resource: str
    gpus: int
    memory_mib: int
    kind: ShareKind
    usd_per_hour_amount: Decimal | None
    free_replicas: int | None = None
    # No such node is there, but one would be started for it.
    is_started: bool = False
    missing: Why | None = None
    missing_words: str = ""

    @property
    def title(self) -> str:
        if self.kind is ShareKind.MIG:
            return f"{self.gpu_name}, slice {self.gpu_resource.removeprefix('nvidia.com/mig-')}"
        slices = {ShareKind.SHARED: ", time-sliced", ShareKind.MPS: ", shared by MPS"}
        return f"{self.gpus} \N{MULTIPLICATION SIGN} {self.gpu_name}{slices.get(self.kind, '')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the team may still take; None is no limit, or not known. Amounts are a month's."""

    quota_left_gpus: int | None = None
    budget_left_amount: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is expected. `busy_us` is the GPU time of one request where it was measured."""

    requests_per_second: int | None = None
    busy_us: int | None = None
    most_replicas: int = 1

    @property
    def replicas(self) -> int:
        """Enough that none is busy more than 70 % of the time; 1 where speed is not known."""
        if not self.requests_per_second or not self.busy_us:
            return 1
        return max(1, -(-self.requests_per_second * self.busy_us // (BUSY_PERCENT * 10_000)))


@dataclass(frozen=True, slots=True)
class Refusal:
    why: Why
    words: str

    @property
    def is_final(self) -> bool:
        return self.why not in (Why.QUOTA, Why.BUDGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`needed_mib` of `offer.memory_mib` on each GPU; `words` say why it stands where it does."""

    offer: Offer
    needed_mib: int
    headroom_percent: int
    replicas: int
    month_amount: Decimal | None
    refusals: tuple[Refusal, ...] = ()
    is_recommended: bool = False
    words: str = ""

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
    *, need: Need, offers: Sequence[Offer], demand: Demand, limits: Limits | None = None
) -> Advice:
    limits = limits or Limits()
    choices = sorted((_weighed(need, offer, demand, limits) for offer in offers), key=_rank)
    fitting = [choice for choice in choices if not choice.is_rejected]
    rejected = [choice for choice in choices if choice.is_rejected]
    return Advice(
        need=need,
        demand=demand,
        ranked=tuple(_told(choice, fitting[0]) for choice in fitting),
        rejected=tuple(sorted(rejected, key=_nearness)),
    )


def _weighed(need: Need, offer: Offer, demand: Demand, limits: Limits) -> Choice:
    needed = need.mib_on(offer.gpus)
    usable = offer.memory_mib * need.usable_percent // 100
    each = offer.usd_per_hour_amount
    month = None if each is None else (each * demand.replicas * HOURS_PER_MONTH).quantize(_CENT)
    choice = Choice(
        offer=offer,
        needed_mib=needed,
        headroom_percent=max(0, (usable - needed) * 100 // usable) if usable else 0,
        replicas=demand.replicas,
        month_amount=month,
    )
    return replace(choice, refusals=tuple(_refusals(choice, need, demand, limits)))


def _refusals(choice: Choice, need: Need, demand: Demand, limits: Limits) -> list[Refusal]:
    offer, found = choice.offer, []
    if offer.missing is not None:
        found.append(Refusal(offer.missing, offer.missing_words))
    if offer.memory_mib and not need.has_room(gpus=offer.gpus, memory_mib=offer.memory_mib):
        found.append(Refusal(*_too_small(choice, need)))
    found += _over_limits(choice, demand, limits)
    return found


def _too_small(choice: Choice, need: Need) -> tuple[Why, str]:
    offer = choice.offer
    part = f" ({need.usable_percent}% usable)" if need.usable_percent < 100 else ""
    words = f"has {offer.memory_mib:,} MiB{part}, needs {choice.needed_mib:,} MiB"
    if offer.gpus > 1 and not need.can_split:
        return Why.SPLIT, f"each GPU {words}: this model can't be split across GPUs"
    each = "each GPU " if offer.gpus > 1 else ""
    return Why.TOO_SMALL, f"{each}{words}"


def _over_limits(choice: Choice, demand: Demand, limits: Limits) -> list[Refusal]:
    found = []
    gpus = choice.offer.gpus * max(choice.replicas, demand.most_replicas)
    left = limits.quota_left_gpus
    if left is not None and gpus > left:
        words = (
            f"needs {gpus} GPU{'s' if gpus != 1 else ''}, {max(0, left)} left in the team's quota"
        )
        found.append(Refusal(Why.QUOTA, words))
    money = limits.budget_left_amount
    if money is not None and choice.month_amount is not None and choice.month_amount > money:
        words = f"${choice.month_amount:,.2f} a month, ${max(Decimal(0), money):,.2f} left"
        found.append(
            Refusal(Why.BUDGET, f"{words} in the team's budget; an approver can accept it")
        )
    return found


def _rank(choice: Choice) -> tuple[bool, bool, Decimal, bool, int, str, int]:
    """Room now, a known price, the price, a wall around it, the headroom."""
    offer = choice.offer
    return (
        offer.free_replicas is not None and offer.free_replicas < choice.replicas,
        choice.month_amount is None,
        choice.month_amount or Decimal(0),
        offer.kind in _WITHOUT_WALL,
        -choice.headroom_percent,
        offer.instance_type,
        offer.gpus,
    )


def _nearness(choice: Choice) -> tuple[bool, bool, int]:
    """Those that may be asked for all the same first, then those that this cluster has."""
    return (not choice.can_choose, choice.offer.missing is not None, len(choice.refusals))


def _told(choice: Choice, best: Choice) -> Choice:
    if choice is best:
        words = "recommended: cheapest with free capacity"
        if _waits(choice):
            room = "a node" if choice.offer.is_started else "room"
            words = f"cheapest that fits; waits for {room}"
        elif choice.month_amount is None:
            words = "fits; price unknown"
        return replace(choice, is_recommended=True, words=_with_wall(choice, words))
    return replace(choice, words=_with_wall(choice, _against(choice, best)))


def _against(choice: Choice, best: Choice) -> str:
    if choice.month_amount is None or best.month_amount is None:
        return "fits; price unknown"
    more = choice.month_amount - best.month_amount
    room = "a new node" if choice.offer.is_started else "room"
    waits = f"waits for {room}; " if _waits(choice) and not _waits(best) else ""
    if more > 0:
        return f"{waits}${more:,.2f} a month more than {best.offer.title}"
    return f"{waits}same cost" if more == 0 else f"{waits}${-more:,.2f} a month less"


def _with_wall(choice: Choice, words: str) -> str:
    is_shared = choice.offer.kind in _WITHOUT_WALL
    return (
        f"{words}; GPU memory is shared with other pods without isolation" if is_shared else words
    )


def _waits(choice: Choice) -> bool:
    free = choice.offer.free_replicas
    return free is not None and free < choice.replicas
