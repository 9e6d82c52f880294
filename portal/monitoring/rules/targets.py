"""Burn rates of standing targets from the counters in Prometheus, by the rule that the portal itself applies.

The portal counts by the minute and says where it does not know; here a series without samples is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deployments.alerts.domain.kinds import slo_burn
from deployments.spec.domain import engines
from deployments.states import TargetMetric
from deployments.targets.domain import burn, metrics
from portal.monitoring import promql
from portal.monitoring.promql import API_ERRORS, SERVED, VLLM
from portal.monitoring.rules.rule import AlertRule, Group, Severity

_OWN_SERVER: Final = (engines.KSERVE_VLLM, engines.LLM_SERVICE)
# Bounds of vLLM's histogram of time to first token, in seconds.
_FIRST_TOKEN_BOUNDS: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_SEVERITY: Final = (Severity.CRITICAL, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """The facts of an SLO that a rule needs. `engine` is that of the stable revision; empty: none serves."""

    team: str
    namespace: str
    deployment: str
    metric: TargetMetric
    objective_percent: float
    threshold_ms: int | None
    engine: str

    def __str__(self) -> str:
        return f"{metrics.KINDS[self.metric].label} of {self.team}/{self.deployment}"


@dataclass(frozen=True, slots=True)
class _Counts:
    """PromQL with `WINDOW` in the place of the range."""

    bad: str
    total: str

    def over(self, minutes: int) -> tuple[str, str]:
        window = f"{minutes}m"
        return self.bad.replace("WINDOW", window), self.total.replace("WINDOW", window)


def group(targets: Sequence[TargetFacts]) -> Group:
    return Group("slipway-targets", [rule for facts in targets for rule in _rules(facts)])


def problem_with(facts: TargetFacts) -> str:
    """Return why Prometheus cannot have the target's figures. Empty if it can."""
    if not facts.engine:
        return "nothing serves yet"
    if facts.metric == TargetMetric.P95:
        return "a summary counts no requests, so its rate needs the portal's readings"
    if facts.engine not in (*engines.TRITON_ENGINES, *engines.VLLM_ENGINES):
        return f"there are rules for Triton and vLLM only, not for {facts.engine}"
    if facts.metric == TargetMetric.FIRST_TOKEN and not _bound(facts):
        return "the limit is below the first bound of the histogram"
    return ""


def _rules(facts: TargetFacts) -> list[AlertRule]:
    if problem_with(facts):
        return []
    counts = _counts(facts)
    budget = burn.budget_of(facts.objective_percent)
    return [
        _rule(facts, counts, rule, severity, budget)
        for rule, severity in zip(burn.RULES, _SEVERITY, strict=True)
        # More than all requests cannot be bad.
        if rule.factor * budget <= 1
    ]


def _rule(
    facts: TargetFacts, counts: _Counts, rule: burn.BurnRule, severity: Severity, budget: float
) -> AlertRule:
    long_bad, long_total = counts.over(rule.long_minutes)
    short_bad, short_total = counts.over(rule.short_minutes)
    # Rounded, so that a rate of exactly the factor reaches it.
    limit = round(rule.factor * budget, 9)
    hours = rule.long_minutes // 60
    description = metrics.describe(facts.metric, facts.objective_percent, facts.threshold_ms)
    return AlertRule(
        name="SlipwayTargetBurning",
        expr=(
            f"{long_bad} / ({long_total} > 0) >= {limit}"
            f" and {short_bad} / ({short_total} > 0) >= {limit}"
            f" and {long_bad} >= {burn.LEAST_BAD}"
        ),
        severity=severity,
        summary=f"The error budget of {facts.team}/{facts.deployment} burns too fast",
        description=(
            f"{{{{ $value | humanizePercentage }}}} of the requests of {hours} h were bad; the target is {description}."
        ),
        advice=slo_burn.KIND.advice,
        labels={
            "team": facts.team,
            "namespace": facts.namespace,
            "deployment": facts.deployment,
            "target": str(facts.metric),
            "burn_rate": f"{rule.factor:g}",
        },
    )


def _counts(facts: TargetFacts) -> _Counts:
    where = f'namespace="{facts.namespace}",{promql.match_pods(facts.deployment)}'
    if facts.metric == TargetMetric.FIRST_TOKEN:
        name = VLLM.first_token[0]
        total = _increase(f"{name}_count", where)
        within = _increase(f"{name}_bucket", f'le=~"{_bound(facts)}",{where}')
        return _Counts(bad=f"({total} - {within})", total=total)
    if facts.engine in _OWN_SERVER:
        http = _increase(f"{VLLM.responses.name}_total", f"{API_ERRORS},{where}")
        engine = _increase(f"{VLLM.finished}_total", f'finished_reason="error",{where}')
        bad = promql.larger(http, engine)
        served = _increase(f"{VLLM.finished}_total", f"{SERVED},{where}")
    else:
        bad = _increase("nv_inference_request_failure", where)
        served = _increase("nv_inference_request_success", where)
    return _Counts(bad=bad, total=f"({bad} + {served})")


def _increase(metric: str, where: str) -> str:
    return f"sum(increase({metric}{{{where}}}[WINDOW]))"


def _bound(facts: TargetFacts) -> str:
    """Return the largest bound within the limit, as a regular expression: Python writes 1.0 where others write 1."""
    limit = facts.threshold_ms or 0
    within = [bound for bound in _FIRST_TOKEN_BOUNDS if bound * 1000 <= limit]
    if not within:
        return ""
    text = f"{within[-1]:g}".replace(".", "[.]")
    return text if "." in text else f"{text}([.]0)?"
