"""What is approved beside the steps: the kind of rollout, its guards, and how they are tested.

    {"kind": "canary" | "blue-green" | "shadow",
     "guards": [{"metric": "error_rate", "max": 0.02, "max_ratio": 1.25, "ignore_below": 0.005},
                {"metric": "latency_p95", "max": 50}, {"metric": "promql", "name": …}, …],
     "analysis": {"alpha": 0.01, "is_strict": false},
     "quality": {"label_drift": 0.15, "embedding_drift": null, …},
     "move_alias": "champion",
     "drain_seconds": 15}

All of it may be left out. Blue/green has one dark step: the candidate is prepared and checked
without any traffic, waits for a person, then takes all requests at once. A shadow candidate gets
copies of traffic moves in steps, and its answers are dropped: only people let users
have them, by promoting it to all requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from deployments.errors import Rejected
from deployments.guards.domain import answer_metrics as quality
from deployments.guards.domain import guard_set
from deployments.guards.domain import limits as guards
from deployments.guards.domain.guard_set import PlanGuards
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.promql import QueryGuard
from deployments.spec.domain import model_names

DRAIN_SECONDS: Final = 15
_LONGEST_DRAIN: Final = 24 * 3600
_FIELDS: Final = frozenset({"kind", "guards", "analysis", "quality", "move_alias", "drain_seconds"})
_AS_THEY_ARE: Final = frozenset({"quality", "move_alias", "drain_seconds"})
_ANALYSIS: Final = frozenset({"alpha", "is_strict"})


class PlanKind(StrEnum):
    CANARY = "canary"
    BLUE_GREEN = "blue-green"
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """`alpha`: at most this share of good candidates is aborted, over the whole rollout.

    `is_strict`: a guard passes only when the candidate is proven to be within the limits limit; else it
    also passes when enough requests were seen and none of the tests says otherwise.
    """

    alpha: float = 0.01
    is_strict: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PlanSettings:
    kind: PlanKind = PlanKind.CANARY
    # Of counters; what the cluster's Prometheus is asked for has its own tests.
    guards: tuple[GuardLimit, ...] = guards.DEFAULTS
    percentiles: tuple[PercentileGuard, ...] = ()
    queries: tuple[QueryGuard, ...] = ()
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)
    # Limits of the model-quality guards that differ from their defaults; None switches one off.
    quality: Mapping[str, float | None] = field(default_factory=dict)
    # The alias that points to the candidate's version once it is stable; empty: none.
    move_alias: str = ""
    drain_seconds: int = DRAIN_SECONDS

    @property
    def tests(self) -> int:
        return self.all_guards.tests

    @property
    def all_guards(self) -> PlanGuards:
        return PlanGuards(self.guards, self.percentiles, self.queries)

    def to_json(self) -> dict[str, Any]:
        chosen = {"quality": dict(self.quality)} if self.quality else {}
        return {
            **chosen,
            "kind": self.kind.value,
            "guards": self.all_guards.to_json(),
            "analysis": self.analysis.to_json(),
            "move_alias": self.move_alias,
            "drain_seconds": self.drain_seconds,
        }


def from_json(plan: Mapping[str, Any]) -> PlanSettings:
    """Rows from before there were plans hold {}: the defaults."""
    found = guard_set.from_json(plan["guards"]) if "guards" in plan else PlanGuards()
    known = {name: value for name, value in plan.items() if name in _AS_THEY_ARE}
    return PlanSettings(
        kind=PlanKind(plan.get("kind", PlanKind.CANARY)),
        guards=found.limits,
        percentiles=found.percentiles,
        queries=found.queries,
        analysis=AnalysisSettings(**plan.get("analysis", {})),
        **known,
    )


def is_shadow(plan: Mapping[str, Any]) -> bool:
    return plan.get("kind") == PlanKind.SHADOW


def check(plan: Any) -> PlanSettings:
    """Raises Rejected, naming the field, unless the plan can be carried out."""
    if not isinstance(plan, Mapping) or not set(plan) <= _FIELDS:
        raise _bad("plan", f"A plan may have {', '.join(sorted(_FIELDS))}.")
    if plan.get("kind", PlanKind.CANARY) not in set(PlanKind):
        raise _bad("kind", f"kind must be one of {', '.join(PlanKind)}.")
    found = guard_set.check(plan["guards"]) if "guards" in plan else PlanGuards()
    return PlanSettings(
        kind=PlanKind(plan.get("kind", PlanKind.CANARY)),
        guards=found.limits,
        percentiles=found.percentiles,
        queries=found.queries,
        analysis=_check_analysis(plan.get("analysis", {})),
        quality=quality.check_limits(plan.get("quality", {})),
        move_alias=_check_alias(plan.get("move_alias", "")),
        drain_seconds=_check_drain(plan.get("drain_seconds", DRAIN_SECONDS)),
    )


def _check_analysis(found: Any) -> AnalysisSettings:
    if not isinstance(found, Mapping) or not set(found) <= _ANALYSIS:
        raise _bad("analysis", f"analysis may have {', '.join(sorted(_ANALYSIS))}.")
    alpha, is_strict = found.get("alpha", 0.01), found.get("is_strict", False)
    is_number = isinstance(alpha, float) and 0.0001 <= alpha <= 0.2
    if not is_number or not isinstance(is_strict, bool):
        raise _bad("analysis", "alpha must be 0.0001 to 0.2, is_strict true or false.")
    return AnalysisSettings(alpha=alpha, is_strict=is_strict)


def _check_alias(found: Any) -> str:
    if not isinstance(found, str):
        raise _bad("move_alias", "move_alias must be the name of an alias.")
    if found and (problem := model_names.alias_problem(found)):
        raise _bad("move_alias", problem)
    return found


def _check_drain(found: Any) -> int:
    is_whole = isinstance(found, int) and not isinstance(found, bool)
    if not is_whole or not DRAIN_SECONDS <= found <= _LONGEST_DRAIN:
        words = f"drain_seconds must be a whole number {DRAIN_SECONDS} to {_LONGEST_DRAIN}."
        raise _bad("drain_seconds", words)
    return int(found)


def _bad(name: str, words: str) -> Rejected:
    return Rejected(words, {name: words})
