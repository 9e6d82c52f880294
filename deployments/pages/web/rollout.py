"""The rollout tab of a deployment, and its actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from deployments.changes.selectors import changes
from deployments.changes.web import field_diff
from deployments.changes.web.field_diff import FieldLine
from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.pages.selectors import shown_state
from deployments.pages.web import frame
from deployments.plans.domain import descriptions
from deployments.quality.web import lines as quality_lines
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.selectors.rollouts import RolloutSummary, StepView
from deployments.rollouts.services import actions as rollout_services
from deployments.rollouts.web import activity, charts, outcome
from deployments.rollouts.web.forms import RolloutForm
from deployments.serving.selectors import deployments
from deployments.states import RolloutPhase
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.core import clock
from portal.core.definitions.counts import format_count
from portal.core.errors import AlreadyDone, NotFound
from portal.ui.access import keeps_input, people_only

_TONES = {"done": "done", "current": "now", "ahead": "", "left": "", "skipped": ""}
_PASSED_TEXT = {
    "done": "passed",
    "left": "left early: promoted fully",
    "skipped": "skipped: promoted fully",
}
_DONE = {
    "promote": "Promoted one step.",
    "promote_fully": "Promoted to all requests.",
    "pause": "Paused. The traffic weight stays as it is.",
    "unpause": "Resumed at the same step.",
    "finish_watch": "Watch ended. The old revision is removed once it is drained.",
    "abort": "Aborting. The candidate gets no more requests.",
}


_LIVE = frame.LiveParts(
    each_poll=("pages/_rollout_board.html",), minutely=("pages/_rollout_traffic.html",)
)


@dataclass(frozen=True, slots=True)
class StepItem:
    view: StepView
    tone: str
    soak: str
    needs: str


@dataclass(frozen=True, slots=True)
class ButtonEffects:
    """The effect of each button."""

    promote: str
    promote_fully: str
    pause: str
    unpause: str
    abort: str
    finish_watch: str


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def rollout(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    current = rollouts.latest(deployment)
    form = RolloutForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        if form.is_valid() and form.needs_confirmation:
            return redirect("promote-fully", team=team, name=name)
        if form.run(lambda: _act(user, current, form)) is not None:
            messages.success(request, _DONE[form.cleaned_data["action"]])
            return redirect("rollout", team=team, name=name)
        if isinstance(form.refusal, AlreadyDone):
            messages.info(request, form.refusal.message)
            return redirect("rollout", team=team, name=name)
        current = rollouts.latest(deployment)
    return _show(request, user, deployment, current, form)


def _act(user: User, rollout: Rollout | None, form: RolloutForm) -> Rollout:
    if rollout is None:
        raise NotFound("No rollout is running.")
    data = form.cleaned_data
    shown, reason = data["evidence_hash"], data["reason"]
    calls: dict[str, Callable[[], Rollout]] = {
        "promote": lambda: rollout_services.promote(
            actor=user, rollout_id=rollout.pk, evidence_hash=shown, comment=reason
        ),
        "promote_fully": lambda: rollout_services.promote_fully(
            actor=user, rollout_id=rollout.pk, evidence_hash=shown, comment=reason
        ),
        "pause": lambda: rollout_services.pause(actor=user, rollout_id=rollout.pk, reason=reason),
        "unpause": lambda: rollout_services.unpause(actor=user, rollout_id=rollout.pk),
        "finish_watch": lambda: rollout_services.finish_watch(actor=user, rollout_id=rollout.pk),
        "abort": lambda: rollout_services.abort(actor=user, rollout_id=rollout.pk, reason=reason),
    }
    return calls[data["action"]]()


def _show(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    rollout: Rollout | None,
    form: RolloutForm,
) -> HttpResponse:
    view = rollouts.view_of(actor=user, rollout=rollout) if rollout else None
    context: dict[str, Any] = {"view": view, "form": form}
    if rollout is not None and view is not None:
        context |= _context_of(rollout, view)
        context["charts"] = charts.charts_of(view) if frame.needs_charts(request) else []
        context["open_rollout"] = None if view.is_final else rollout
    status = form.status if form.is_bound else 200
    return frame.show(request, user, deployment, "rollout", context, live=_LIVE, status=status)


def _context_of(rollout: Rollout, view: RolloutSummary) -> dict[str, Any]:
    phase, at = RolloutPhase(rollout.phase), clock.now()
    change = changes.list_visible_to(SYSTEM).filter(pk=rollout.change_id).first()
    no_promotion = activity.why_no_promotion(rollout, view)
    no_full = activity.why_no_full_promotion(rollout, view)
    text = frame.rollout_text(view) if view.steps else descriptions.describe_direct(phase)
    return {
        "steps": [_step_item(step, view) for step in view.steps],
        "activity": activity.activity_of(rollout, change),
        "verdict": activity.verdict_of(view),
        "outcome": outcome.outcome_of(view),
        "alarm": outcome.alarm_of(view),
        **quality_lines.before_traffic_context(rollout),
        "effects": _button_effects(rollout, view),
        "board_text": text,
        "board_tone": shown_state.tone_of(rollout),
        "is_pausable": phase in (RolloutPhase.PREPARING, RolloutPhase.RUNNING),
        "is_watch_over": view.is_watched and (rollout.watch_until or at) <= at,
        "is_abortable": phase != RolloutPhase.ABORTING,
        "no_promotion": no_promotion,
        "no_full_promotion": no_full,
        "change_lines": _changed_lines(change),
        "cost": outcome.cost_of(rollout, view),
    }


def _step_item(step: StepView, view: RolloutSummary) -> StepItem:
    soak = descriptions.format_duration(step.soak_seconds)
    if step.state == "current":
        seconds_left = view.soak_left_seconds
        soak_text = "soak done" if seconds_left == 0 else f"soak {soak}"
        if seconds_left:
            soak_text = f"{descriptions.format_duration(seconds_left)} of {soak} left"
        candidate_count = (
            "not known" if view.candidate_requests is None else f"{view.candidate_requests:,}"
        )
        needs = (
            f"{candidate_count} of {format_count(step.min_requests, 'request')}"
            if step.min_requests
            else ""
        )
        if step.min_requests and view.candidate_requests is None:
            needs = f"needs {format_count(step.min_requests, 'request')}"
        if step.min_requests and (view.candidate_requests or 0) >= step.min_requests:
            needs = f"{format_count(view.candidate_requests or 0, 'request')} (enough)"
    else:
        soak_text = _PASSED_TEXT.get(step.state, f"soak {soak}")
        if step.state == "ahead" and not step.soak_seconds:
            soak_text = "no soak"
        needs = _who_promotes(step) if step.state == "ahead" else ""
        if step.state == "ahead" and view.is_final:
            return _not_passed(step, view)
    return StepItem(step, _TONES[step.state], soak_text, needs)


def _not_passed(step: StepView, view: RolloutSummary) -> StepItem:
    is_here = step.index == view.rollout.step_index and bool(view.guards)
    if is_here:
        return StepItem(step, "failed", "stopped here", "")
    return StepItem(step, "", "not reached", "")


def _who_promotes(step: StepView) -> str:
    text = (
        "promotes automatically if all guards pass"
        if step.auto_promote
        else "then promoted by hand"
    )
    if step.deadline_seconds:
        text += f", within {descriptions.format_duration(step.deadline_seconds)}"
    return text


def _button_effects(rollout: Rollout, view: RolloutSummary) -> ButtonEffects:
    candidate = rollout.candidate_revision.version.label
    stable = rollout.stable_revision
    replaces = f"r{stable.number} is drained, then removed."
    if view.next_weight is None:
        promote = ""
    elif view.is_mirroring and not view.is_last_step:
        promote = (
            f"Mirrors {view.next_weight}% of requests to {candidate}; its responses are discarded. "
            "Both revisions keep their GPUs."
        )
    elif view.has_all_requests:
        promote = f"Makes {candidate}, which gets all requests already, stable. {replaces}"
    elif view.next_weight == 100:
        promote = f"Sends all requests to {candidate}. {replaces}"
    else:
        promote = (
            f"Sends {view.next_weight}% of requests to {candidate} at the gateway. "
            "Both revisions keep their GPUs."
        )
    return ButtonEffects(
        promote=promote,
        promote_fully=f"{_describe_skipped(view)}Sends all requests to {candidate}. {replaces}",
        pause=f"Stays at {_describe_weight(view)} until someone resumes it.",
        unpause="Continues at the same step. Soak time and counts are kept.",
        abort=_describe_abort(view, stable.version.label),
        finish_watch=f"Ends the watch. {replaces} Going back is then a change request.",
    )


def _describe_skipped(view: RolloutSummary) -> str:
    """Return the consequence of a full promotion, including incomplete evidence."""
    if view.rollout.phase != RolloutPhase.RUNNING or view.is_promotable:
        return "Skips the remaining steps. "
    why = view.promotable_reason.rstrip(".") or "no evidence yet"
    return f"The evidence is incomplete ({why}). Skips the remaining steps. "


def _describe_weight(view: RolloutSummary) -> str:
    mirrored = " mirrored" if view.is_mirroring else ""
    return f"{view.requested_percent}%{mirrored}"


def _describe_abort(view: RolloutSummary, stable: str) -> str:
    if view.is_watched:
        candidate = view.rollout.candidate_revision.version.label
        return (
            f"Sends all requests back to {stable}, which still runs, then removes {candidate}. "
            "Requests in flight complete."
        )
    if view.is_mirroring:
        return f"Stops mirroring, then removes the candidate. Users are not affected: {stable} serves them."
    return (
        f"Sends all requests back to {stable}, then removes the candidate. "
        "Requests in flight complete."
    )


def _changed_lines(change: ChangeRequest | None) -> list[FieldLine]:
    """Return the changed lines of the request, while there is a stable revision to compare with."""
    diff = field_diff.build_diff(change) if change else None
    if diff is None or not diff.has_before:
        return []
    return [line for line in diff.shown if line.before]
