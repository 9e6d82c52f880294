"""A deployment that never served and is not ready in time gives its GPUs back.

It is stopped, so whoever mends what kept it from loading may start it again, or ask to retire it.
What has served before is never given up: it may come back by itself.
"""

from __future__ import annotations

from django.urls import reverse

from deployments.delivery.domain.health import Facts
from deployments.models import ChangeRequest, Deployment
from deployments.serving.services import stopping
from deployments.states import ChangeKind, ChangeState
from portal.accounts.policy import SYSTEM
from portal.notifications import events
from portal.notifications import services as notifications

_STARTS = (ChangeKind.DEPLOY, ChangeKind.START)


def is_due(deployment: Deployment, facts: Facts) -> bool:
    """Only of what was seen now: a cluster that does not answer says nothing of the pods."""
    is_alone = deployment.candidate_revision_id is None
    is_unready = facts.stable is not None and not facts.stable.is_ready
    is_wanted = not facts.is_stopped and not facts.is_retiring
    never_served = deployment.first_ready_at is None
    return never_served and is_unready and is_alone and is_wanted and facts.is_late


def give_up(deployment: Deployment, reason: str) -> None:
    """Inside a transaction that holds the row. Nothing when someone changed what is wanted."""
    same = Deployment.objects.filter(
        pk=deployment.pk,
        desired_generation=deployment.desired_generation,
        is_stopped=False,
        is_retiring=False,
    )
    if not same.exists():
        return
    words = f"gave up and released its GPUs: {reason}"
    stopping.begin(actor=SYSTEM, deployment=deployment, reason=words)
    notifications.notify(
        team=deployment.team,
        event=events.DEPLOYMENT_FAILING.code,
        subject=f"{deployment} failed to start",
        message=f"Slipway {words}",
        path=reverse("deployment", args=(deployment.team.slug, deployment.name)),
        data={"state": "stopped"},
    )


def reason_of(deployment: Deployment) -> str:
    """Why what is stopped never served; empty for all others."""
    if not deployment.is_stopped or deployment.first_ready_at is not None:
        return ""
    rows = ChangeRequest.objects.filter(
        deployment=deployment, kind__in=_STARTS, state=ChangeState.FAILED
    )
    return rows.values_list("state_reason", flat=True).first() or ""
