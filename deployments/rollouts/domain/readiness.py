"""Whether a person may promote a step now, and if not, what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from deployments.plans.domain import descriptions
from deployments.rollouts.domain.observation import RolloutProgress


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a person may promote now; `message` says why or why not. `unjudged` names what no guard could
    judge: a person may promote without it, the plan may not.
    """

    is_promotable: bool
    message: str
    soak_left_seconds: int
    unjudged: str = ""

    @property
    def is_auto_promotable(self) -> bool:
        return self.is_promotable and not self.unjudged


def readiness_of(
    progress: RolloutProgress,
    *,
    candidate_requests: int | None,
    failing: tuple[str, ...],
    undecided: tuple[str, ...],
    now: datetime,
    unknown: str = "",
    warming: str = "",
    unjudged: tuple[str, ...] = (),
) -> Readiness:
    """Judge whether the present step can be promoted: after soak and enough requests, when no guard fails. What
    is not known waits and says so: `unknown` says why there are no numbers, `warming` until when there are
    none of times. `unjudged` are guards that will not judge this step, each with the reason: they leave it
    to a person.

    A step with traffic needs a reading with requests and a verdict of every guard, also where the
    plan requires no number of requests.
    """
    if progress.is_watched:
        return _watched(progress, failing, now)
    if progress.step_started_at is None:
        message = f"the route does not {progress.requested} yet"
        return Readiness(is_promotable=False, message=message, soak_left_seconds=0)
    end = progress.step_started_at + timedelta(seconds=progress.step.soak_seconds)
    left = max(0, int((end - now).total_seconds()))
    needed, counted = progress.step.min_requests, candidate_requests
    has_traffic = progress.step.weight > 0
    what = "mirrored requests" if progress.is_shadow else "requests"
    lacks = (
        (bool(failing), f"failing: {', '.join(failing)}. Abort, or wait."),
        (progress.promoted_to is not None, progress.describe_growth()),
        (left > 0, f"soaking for {descriptions.format_duration(left)} more"),
        (has_traffic and counted is None, unknown or "the candidate's requests are not known"),
        (needed > (counted or 0), f"{counted or 0} of {needed} {what} so far"),
        (has_traffic and not counted, f"no {what} were counted at this step yet"),
        (bool(undecided), f"not enough data: {', '.join(undecided)}{warming and f' ({warming})'}"),
    )
    missing = next((message for is_lacking, message in lacks if is_lacking), "")
    done = "checked, no traffic yet" if progress.step.weight == 0 else "no guard failed"
    message = missing or f"soak done, {'enough requests, ' if needed else ''}{done}"
    lacking = "; ".join(unjudged)
    if not missing and lacking and progress.is_promoted_automatically:
        message = f"{message}. It is not promoted automatically, because some guards gave no verdict: {lacking}"
    return Readiness(
        is_promotable=not missing, message=message, soak_left_seconds=left, unjudged=lacking
    )


def _watched(progress: RolloutProgress, failing: tuple[str, ...], now: datetime) -> Readiness:
    """Say until when a failure still rolls back. There is nothing left to promote."""
    until = progress.watch_until
    if failing:
        message = f"failing: {', '.join(failing)}"
    elif until is None or now >= until:
        message = "the watch is over; the old revision is removed once it is drained"
    else:
        message = f"watched until {until:%H:%M:%S} UTC; a failure rolls back to the old revision"
    return Readiness(is_promotable=False, message=message, soak_left_seconds=0)
