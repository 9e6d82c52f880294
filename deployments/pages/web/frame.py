"""The head of every tab of a deployment: state, address, traffic and actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from deployments.changes.web import items
from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.environments.domain import environment_rules
from deployments.models import Deployment, Rollout
from deployments.plans.domain import descriptions
from deployments.registry.selectors import starts
from deployments.registry.web import starts as registry_starts
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.selectors.rollouts import RolloutSummary
from deployments.rollouts.web.buttons import buttons_of
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.selectors import deployments, revision_roles
from deployments.serving.services import stopping
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import DeploymentState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import definitions
from portal.ui.htmx import respond

_ENGINE_NAMES: Final = definitions.fields_of(ServingSpec)["engine"].choices
TABS = (
    ("deployment", "Overview"),
    ("rollout", "Rollout"),
    ("revisions", "Revisions"),
    ("manifests", "Manifests"),
    ("timeline", "Timeline"),
    ("logs", "Logs"),
    ("try-it", "Try it"),
    ("health", "Quality"),
    ("targets", "Targets"),
    ("callers", "Callers"),
    ("deployment-cost", "Cost"),
)

_STEADY = {DeploymentState.READY, DeploymentState.STOPPED}
_MOVING_SECONDS, _STEADY_SECONDS = 4, 15


@dataclass(frozen=True, slots=True)
class Tab:
    url_name: str
    title: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class HeadAction:
    text: str
    url: str
    tone: str = ""
    detail: str = ""


def show(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    tab: str,
    context: dict[str, Any],
    *,
    parts: dict[str, str] | None = None,
    is_final: bool = False,
    status: int = 200,
) -> HttpResponse:
    """Return the page with the tab's body from `_<tab>.html`, or the part that htmx requested."""
    body = f"pages/_{tab.replace('-', '_')}.html"
    whole = {
        **head_of(user, deployment),
        "body": body,
        "tabs": [Tab(name, title, name == _url_name(tab)) for name, title in TABS],
        "tab_title": dict(TABS)[_url_name(tab)],
        **context,
    }
    swaps = {"deployment-head": "pages/_deployment_head.html", **(parts or {})}
    return respond(
        request, "pages/deployment.html", whole, parts=swaps, is_final=is_final, status=status
    )


def head_of(user: User, deployment: Deployment) -> dict[str, Any]:
    rollout = rollouts.current(deployment)
    view = rollouts.view_of(actor=user, rollout=rollout) if rollout else None
    stable, candidate = deployment.stable_revision, deployment.candidate_revision
    can_request = policy.is_allowed(user, Action.REQUEST_CHANGE, deployment)
    open_change = items.open_change_of(user, deployment)
    return {
        "deployment": deployment,
        "spec": deployments.spec_of_stable(deployment),
        "engine_name": _ENGINE_NAMES.get(stable.spec["engine"], "") if stable else "",
        "address": deployments.url_of(deployment),
        "stable_label": f"stable · {stable.version.label} · r{stable.number}" if stable else "",
        "candidate_label": f"{candidate.version.label} · r{candidate.number}" if candidate else "",
        "observed_percent": _percent(view.observed_share if view else None),
        "band_low": _percent(view.share_low if view else None),
        "band_high": _percent(view.share_high if view else None),
        "rollout_buttons": buttons_of(rollout, view) if rollout and view else None,
        "rollout_text": rollout_text(view) if view and view.steps else "",
        "rollout_tone": rollout_tone(rollout) if rollout else "",
        "state": "stopping" if deployments.is_stopping(deployment) else deployment.state,
        "poll_seconds": _poll_seconds(
            deployment, is_busy=rollout is not None or open_change is not None
        ),
        "typical_start": _typical_start(deployment),
        "queues": deployments.queues_to_mention(deployment),
        "open_change": None if rollout else open_change,
        "can_request": can_request,
        "has_pending_drift": Drift.from_json(deployment.drift).outcome == DriftOutcome.PENDING,
        "actions": _actions(deployment, can_request=can_request, is_busy=open_change is not None),
    }


def _poll_seconds(deployment: Deployment, *, is_busy: bool) -> int:
    """Return the seconds until the header polls again: short while something changes."""
    is_ending = deployments.is_stopping(deployment) or deployment.is_retiring
    is_steady = deployment.state in _STEADY and not is_busy and not is_ending
    return _STEADY_SECONDS if is_steady else _MOVING_SECONDS


def _typical_start(deployment: Deployment) -> str:
    """Describe how long a start usually takes, while a revision starts. Empty otherwise."""
    if deployment.is_stopped or deployment.is_retiring or deployment.is_retired:
        return ""
    revision = next(
        (
            revision
            for revision in (deployment.candidate_revision, deployment.stable_revision)
            if revision is not None
            and ObservedRevision.from_column(deployment.observed, revision.number).is_ready is False
        ),
        None,
    )
    usual = starts.typical_start_of(revision) if revision is not None else None
    return registry_starts.describe(usual) if usual is not None else ""


def rollout_text(view: RolloutSummary) -> str:
    return descriptions.describe_progress(
        view.rollout.phase,
        step_index=view.rollout.step_index,
        step_count=len(view.steps),
        is_shadow=view.is_shadow,
    )


def rollout_tone(rollout: Rollout) -> str:
    return "canary" if rollout.phase in ("preparing", "running") else str(rollout.phase)


def _actions(deployment: Deployment, *, can_request: bool, is_busy: bool) -> list[HeadAction]:
    """Return the actions that are possible now. Services refuse others."""
    if not can_request or deployment.is_retired or deployment.stable_revision is None:
        return []
    args = (deployment.team.slug, deployment.name)
    new = reverse("new-deployment", args=(deployment.team.slug,))
    clone = HeadAction("Clone", f"{new}?from={deployment.name}", tone="quiet")
    stop = HeadAction("Stop", reverse("stop-deployment", args=args))
    retire = HeadAction("Retire", reverse("request-retire", args=args), tone="danger")
    if is_busy:
        # A stop that needs approval has to wait for the open change. A deployment that never served
        # can be retired at any time.
        is_off = deployment.is_stopped or deployment.is_retiring
        if is_off or stopping.needs_approval(deployment):
            return [clone]
        return [clone, retire, stop] if deployment.first_ready_at is None else [clone, stop]
    if deployment.is_stopped:
        start = HeadAction("Start", reverse("request-start", args=args), tone="primary")
        return [clone, retire, start]
    scale = HeadAction("Scale", reverse("request-scale", args=args))
    canary = HeadAction("Request a canary", reverse("request-canary", args=args), tone="primary")
    back = HeadAction("Roll back", reverse("request-roll-back", args=args))
    promote = _promotion(deployment)
    is_first = deployment.stable_revision.number == 1
    has_past = not is_first and bool(revision_roles.list_restorable(deployment))
    return [clone, retire, stop, scale, *([back] if has_past else []), *promote, canary]


def _promotion(deployment: Deployment) -> list[HeadAction]:
    environment = environment_rules.next_of(deployment.environment)
    if environment is None:
        return []
    url = reverse("promote-deployment", args=(deployment.team.slug, deployment.name))
    return [HeadAction(f"Promote to {environment}", url)]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _url_name(tab: str) -> str:
    return {"overview": "deployment", "try": "try-it", "cost": "deployment-cost"}.get(tab, tab)
