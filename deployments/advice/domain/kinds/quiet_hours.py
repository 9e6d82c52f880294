"""Hours of every week without requests: office hours, or scale to zero."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from deployments.advice.domain.advice import Proposal, Risk, Saving, limit_saving, per_month, rate
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.domain.facts import WEEK_HOURS, DeploymentFacts, Hour
from deployments.spec.domain.engines import KSERVE_ENGINES, LLM_SERVICE
from deployments.spec.domain.scaling import FIXED, KEDA, KNATIVE, Scaling
from fleet.gpus.domain.money import HOURS_PER_MONTH
from portal.core.definitions.counts import format_count

OFFICE: Final = "office-hours"
ZERO: Final = "scale-to-zero"
# Office hours refuse requests outside of them, so one quiet week is no proof.
_WEEKS: Final = 2
# Below this many hours a week a schedule is not worth its risk.
_LEAST_QUIET_HOURS: Final = 24
_MIDNIGHT: Final = 24


@dataclass(frozen=True, slots=True)
class Window:
    """A weekly window from `start` to `end` o'clock UTC on `days`; Monday is 0."""

    start: int
    end: int
    days: tuple[int, ...]

    @property
    def hours_per_week(self) -> int:
        return (self.end - self.start) * len(self.days)

    def covers(self, hour: Hour) -> bool:
        return hour.start.weekday() in self.days and self.start <= hour.start.hour < self.end


def decide_office_hours(facts: DeploymentFacts) -> Saving | None:
    if not facts.has(KEDA) or not _can_be_scaled(facts):
        return None
    if facts.hours_watched < _WEEKS * WEEK_HOURS or not _is_charged(facts, _WEEKS * WEEK_HOURS):
        return None
    used = [hour for hour in facts.hours if not hour.is_quiet]
    window = smallest_window(used)
    # A schedule ends on the day that it started: one to midnight would end a day later.
    if window is None or window.end == _MIDNIGHT:
        return None
    quiet = WEEK_HOURS - window.hours_per_week
    if quiet < _LEAST_QUIET_HOURS:
        return None
    days = describe_days(window.days)
    message = (
        f"Run from {window.start:02}:00 to {_clock(window.end)} UTC, {days}: "
        f"no request came at another time in {_WEEKS} weeks."
    )
    reason = "Requests outside these hours are refused until the next start."
    schedule = {
        "timezone": "UTC",
        "start": f"{window.start:02}:00",
        "end": _clock(window.end),
        "days": _cron_days(window.days),
        "replicas": facts.spec.min_replicas,
    }
    scaling = Scaling.from_json({"kind": KEDA, "can_scale_to_zero": True, "office_hours": schedule})
    return _saving(facts, quiet, message, Risk.MEDIUM, reason, scaling)


def decide_scale_to_zero(facts: DeploymentFacts) -> Saving | None:
    """Advise scale to zero. Each pause without requests counts less the cooldown and a cold start."""
    kind = _waking_kind(facts)
    if kind is None or facts.cold_start_seconds is None or not _can_be_scaled(facts):
        return None
    week = facts.last_week()
    if not facts.runs_always or all(hour.is_quiet for hour in week):
        return None
    stretches = quiet_stretches(week)
    waiting = facts.spec.scaling.cooldown_seconds + facts.cold_start_seconds
    quiet_seconds = sum(max(0, hours * 3600 - waiting) for hours in stretches)
    quiet = quiet_seconds // 3600
    if quiet < _LEAST_QUIET_HOURS:
        return None
    message = (
        f"Scale to zero: {sum(stretches)} of the last {WEEK_HOURS} hours had no request. "
        f"The first request after a pause waits about {facts.cold_start_seconds} s."
    )
    risk = Risk.MEDIUM if facts.cold_start_seconds <= 60 else Risk.HIGH
    reason = (
        f"A cold start takes {facts.cold_start_seconds} s (median of {format_count(facts.starts, 'start')}), "
        f"{format_count(len(stretches), 'time')} a week."
    )
    seconds = facts.spec.scaling.cooldown_seconds
    metric = {"metric": "gateway-latency"} if kind == KEDA else {}
    scaling = Scaling.from_json(
        {"kind": kind, "can_scale_to_zero": True, "cooldown_seconds": seconds, **metric}
    )
    return _saving(facts, quiet, message, risk, reason, scaling)


def smallest_window(used: Collection[Hour]) -> Window | None:
    """Return the smallest window that covers every used hour. None if no hour is used."""
    if not used:
        return None
    days = tuple(sorted({hour.start.weekday() for hour in used}))
    clock_hours = [hour.start.hour for hour in used]
    return Window(min(clock_hours), max(clock_hours) + 1, days)


def quiet_stretches(hours: Iterable[Hour]) -> list[int]:
    """Return the lengths of runs of hours without requests."""
    lengths, length = [], 0
    for hour in hours:
        if hour.is_quiet:
            length += 1
        elif length:
            lengths.append(length)
            length = 0
    return [*lengths, length] if length else lengths


def describe_days(days: tuple[int, ...]) -> str:
    if days == (0, 1, 2, 3, 4):
        return "Monday to Friday"
    if len(days) == 7:
        return "every day"
    names = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    return ", ".join(names[day] for day in days)


def _saving(
    facts: DeploymentFacts, quiet: int, message: str, risk: Risk, reason: str, scaling: Scaling
) -> Saving | None:
    if facts.replica_amount is None:
        return None
    price, replicas = facts.replica_amount, facts.spec.min_replicas
    hours = Decimal(quiet) * HOURS_PER_MONTH / WEEK_HOURS
    settings: dict[str, Any] = {"scaling": scaling.model_dump(mode="json")}
    return Saving(
        message=message,
        evidence=(
            EvidenceLine("Hours a week without it", f"{quiet} of {WEEK_HOURS}"),
            EvidenceLine(
                "Requests, 7 days", f"{sum(hour.requests for hour in facts.last_week()):,}"
            ),
            EvidenceLine("Cold start", _describe_start(facts)),
        ),
        cost_amount=facts.month_amount,
        saving_amount=limit_saving(per_month(price * replicas, hours), cost=facts.month_amount),
        formula=f"{quiet} of {WEEK_HOURS} h \N{MULTIPLICATION SIGN} {replicas} \N{MULTIPLICATION SIGN} {rate(price)} \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h",
        risk=risk,
        risk_reason=reason,
        proposal=Proposal(kind="canary", settings=settings),
    )


def _describe_start(facts: DeploymentFacts) -> str:
    return "not measured" if facts.cold_start_seconds is None else f"{facts.cold_start_seconds} s"


def _can_be_scaled(facts: DeploymentFacts) -> bool:
    spec = facts.spec
    is_one_pod = spec.nodes == 1 and spec.engine != LLM_SERVICE
    return is_one_pod and spec.scaling.kind == FIXED and facts.runs_always


def _is_charged(facts: DeploymentFacts, hours: int) -> bool:
    return len(facts.hours) >= hours and all(hour.is_priced for hour in facts.hours)


def _waking_kind(facts: DeploymentFacts) -> str | None:
    """Return the kind of scaling that can start a pod at the first request under the spec's rules. None if the
    cluster has none.
    """
    if not facts.has("scale-to-zero"):
        return None
    if facts.has(KNATIVE) and facts.spec.engine in KSERVE_ENGINES:
        return KNATIVE
    return KEDA if facts.has(KEDA) and facts.has("gateway-latency") else None


def _clock(hour: int) -> str:
    return f"{hour:02}:00"


def _cron_days(days: tuple[int, ...]) -> str:
    """Return the days as cron counts them, from Sunday as 0."""
    if days == (0, 1, 2, 3, 4):
        return "1-5"
    return "*" if len(days) == 7 else ",".join(str((day + 1) % 7) for day in days)
