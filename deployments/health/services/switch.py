"""Switch the watch of a deployment off and on."""

from __future__ import annotations

from django.db import transaction

from deployments import audit_actions
from deployments.changes.services import safeguards
from deployments.changes.services.safeguards import Safeguard
from deployments.models import Deployment, DeploymentHealth
from deployments.serving.selectors import deployments
from deployments.serving.services import timeline
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict


def switch(*, actor: User, deployment_id: int, is_on: bool) -> Deployment:
    """Switch the watch of a deployment on or off. While it is off nothing is sent or judged; the history stays.
    Switching it off waits for approvals, as a change does. Raises Conflict for a retired deployment.
    """
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.is_retired:
        raise Conflict(f"{deployment} is retired, so it is not watched.", code="retired")
    at = clock.now()
    with transaction.atomic():
        DeploymentHealth.objects.get_or_create(
            deployment=deployment, defaults={"next_check_at": at}
        )
        rows = DeploymentHealth.objects.filter(deployment=deployment, is_on=not is_on)
        if is_on:
            safeguards.withdraw(deployment, Safeguard.HEALTH)
        elif rows.exists() and not safeguards.may_remove(actor, deployment, Safeguard.HEALTH):
            return deployment
        if not rows.update(is_on=is_on, next_check_at=at):
            return deployment
        word = "on" if is_on else "off"
        timeline.note(
            deployment=deployment,
            kind="quality watch",
            message=f"quality watch switched {word}",
            actor=actor,
        )
        trail.record(
            actor=actor,
            action=audit_actions.HEALTH_SWITCHED,
            obj=deployment,
            label=str(deployment),
            team_slug=deployment.team.slug,
            before={"is_on": not is_on},
            after={"is_on": is_on},
        )
    return deployment
