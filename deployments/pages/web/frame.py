"""The head of every tab of a deployment: state, address, traffic and actions.

Head and live parts of a tab are one reading: they come from the same rows and are polled in one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from deployments.approvals.selectors import earlier_approvals
from deployments.changes.selectors import roll_backs
from deployments.changes.web import items, roll_back_summaries
from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.environments.domain import environment_rules
from deployments.models import Deployment, Rollout
from deployments.pages.selectors import shown_state
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
from portal.core import clock, definitions
from portal.ui.htmx import respond, respond_with_part, target_of

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
_HEAD = "deployment-head"
# Names in the query of a poll: the minute whose charts the page shows, and that it shows the head alone.
_DRAWN, _ONLY = "drawn", "only"


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
    # The revision to roll back to. None: the action is a link to its page.
    restores: int | None = None


@dataclass(frozen=True, slots=True)
class LiveParts:
    """The templates of a tab that are polled together with the head, each with one element that has an id.

    `minutely` are those of charts, which change once a minute and are sent when a new minute has begun.
    """

    each_poll: tuple[str, ...] = ()
    minutely: tuple[str, ...] = ()


def show(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    tab: str,
    context: Mapping[str, Any],
    *,
    live: LiveParts | None = None,
    parts: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Return the page with the tab's body from `_<tab>.html`, its poll, or the part that htmx requested."""
    reading = {
        **head_of(user, deployment, rollout=context.get("open_rollout")),
        "poll_url": _poll_url(request, deployment, live),
        **context,
    }
    if is_poll(request):
        swapped = () if live is None else live.each_poll
        swapped += () if live is None or not needs_charts(request) else live.minutely
        return respond_with_part(
            request,
            "pages/_deployment_poll.html",
            {**reading, "live_parts": swapped},
            is_final=deployment.is_retired,
        )
    whole = {
        **reading,
        "body": f"pages/_{tab.replace('-', '_')}.html",
        "tabs": [Tab(name, title, name == _url_name(tab)) for name, title in TABS],
        "tab_title": dict(TABS)[_url_name(tab)],
    }
    return respond(request, "pages/deployment.html", whole, parts=parts, status=status)


def is_poll(request: HttpRequest) -> bool:
    """Whether the page polls its head and the live parts of its tab."""
    return target_of(request) == _HEAD


def is_head_alone(request: HttpRequest) -> bool:
    """Whether the page polls its head, and its tab has no live parts."""
    return is_poll(request) and _ONLY in request.GET


def needs_charts(request: HttpRequest) -> bool:
    """Whether the page has no charts of this minute yet."""
    return not is_poll(request) or request.GET.get(_DRAWN) != _minute()


def _minute() -> str:
    return f"{clock.now():%d%H%M}"


def _poll_url(request: HttpRequest, deployment: Deployment, live: LiveParts | None) -> str:
    """Return the address of the next poll. Tabs without live parts poll the head from the overview's."""
    args = (deployment.team.slug, deployment.name)
    if live is None or is_head_alone(request):
        return f"{reverse('deployment', args=args)}?{_ONLY}=head"
    query = request.GET.copy()
    query.pop(_DRAWN, None)
    if live.minutely:
        query[_DRAWN] = _minute()
    return f"{request.path}?{query.urlencode()}" if query else request.path


def head_of(
    user: User, deployment: Deployment, *, rollout: Rollout | None = None
) -> dict[str, Any]:
    """Return the context of the head. `rollout` is the open one if it is read already."""
    rollout = rollout or rollouts.current(deployment)
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
        "shown": shown_state.describe_deployment(deployment, rollout),
        "is_routed": deployments.is_routed(deployment),
        "poll_seconds": _poll_seconds(
            deployment, is_busy=rollout is not None or open_change is not None
        ),
        "typical_start": _typical_start(deployment),
        "queues": deployments.queues_to_mention(deployment),
        "open_change": None if rollout else open_change,
        "can_request": can_request,
        "has_pending_drift": Drift.from_json(deployment.drift).outcome == DriftOutcome.PENDING,
        "actions": _actions(
            user, deployment, can_request=can_request, is_busy=open_change is not None
        ),
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


def _actions(
    user: User, deployment: Deployment, *, can_request: bool, is_busy: bool
) -> list[HeadAction]:
    """Return the actions that are possible now. Services refuse others."""
    if not can_request or deployment.is_retired or deployment.stable_revision is None:
        return []
    args = (deployment.team.slug, deployment.name)
    new = reverse("new-deployment", args=(deployment.team.slug,))
    clone = HeadAction("Clone", f"{new}?from={deployment.name}", tone="quiet")
    stop = HeadAction("Stop", reverse("stop-deployment", args=args))
    retire = HeadAction("Retire", reverse("request-retire", args=args), tone="quiet danger")
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
    back, promote = _roll_back(user, deployment), _promotion(deployment)
    return [clone, retire, stop, scale, *back, *promote, canary]


def _roll_back(user: User, deployment: Deployment) -> list[HeadAction]:
    """Return the way back to what served before, else to the choice of what ran. Empty without any. It is one click
    for those who need no new approval.
    """
    url = reverse("request-roll-back", args=(deployment.team.slug, deployment.name))
    now, previous = deployment.stable_revision, earlier_approvals.previously_serving(deployment)
    if now is None or previous is None:
        return [HeadAction("Roll back", url)] if revision_roles.list_restorable(deployment) else []
    number = previous.number
    may_decide = policy.is_allowed(user, Action.PROMOTE, deployment)
    if may_decide and roll_backs.preview(user, deployment, previous).earlier is not None:
        changes = roll_back_summaries.describe_changes(now, previous)
        return [HeadAction("Roll back", url, detail=changes, restores=number)]
    return [HeadAction("Roll back", f"{url}?revision={number}", detail=f"to r{number}")]


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
