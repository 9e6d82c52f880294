"""Stop a deployment that never served and is not ready in time, so that its GPUs are released.

Whoever fixes what kept it from loading can start it again. A deployment that has served before is
never stopped: it may recover.
"""

from __future__ import annotations

from django.urls import reverse

from deployments.delivery.domain.health import HealthFacts
from deployments.models import ChangeRequest, Deployment
from deployments.serving.services import stopping
from deployments.states import ChangeKind, ChangeState
from portal.accounts.policy import SYSTEM
from portal.notifications import events
from portal.notifications import services as notifications

_STARTS = (ChangeKind.DEPLOY, ChangeKind.START)


def is_due(deployment: Deployment, facts: HealthFacts) -> bool:
    """Whether a deployment that never served is out of time. Call it only with fresh facts: a cluster that does not
    answer says nothing about the pods.
    """
    has_candidate = deployment.candidate_revision_id is not None
    is_unready = facts.stable is not None and not facts.stable.is_ready
    should_run = not facts.is_stopped and not facts.is_retiring
    has_served = deployment.first_ready_at is not None
    return not has_served and is_unready and not has_candidate and should_run and facts.is_late


def give_up(deployment: Deployment, reason: str) -> None:
    """Stop the deployment, unless its desired state changed. Call it inside a transaction that locks the row."""
    unchanged = Deployment.objects.filter(
        pk=deployment.pk,
        desired_generation=deployment.desired_generation,
        is_stopped=False,
        is_retiring=False,
    )
    if not unchanged.exists():
        return
    message = f"gave up and released its GPUs: {reason}"
    stopping.begin(actor=SYSTEM, deployment=deployment, reason=message)
    notifications.notify(
        team=deployment.team,
        event=events.DEPLOYMENT_FAILING.code,
        subject=f"{deployment} failed to start",
        message=f"Slipway {message}",
        path=reverse("deployment", args=(deployment.team.slug, deployment.name)),
        data={"state": "stopped"},
    )


def reason_of(deployment: Deployment) -> str:
    """Return why a stopped deployment never served. Empty for all others."""
    if not deployment.is_stopped or deployment.first_ready_at is not None:
        return ""
    rows = ChangeRequest.objects.filter(
        deployment=deployment, kind__in=_STARTS, state=ChangeState.FAILED
    )
    return rows.values_list("state_reason", flat=True).first() or ""
