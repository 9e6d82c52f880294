"""Rollout plans that a team keeps to start from: saved by name, used as a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import transaction

from deployments import rejections
from deployments.models import RolloutTemplate
from deployments.plans.domain import rollout_plan
from deployments.plans.selectors import plans
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

SAVED = register("rollout_template.saved", "saved a rollout template of")
REMOVED = register("rollout_template.removed", "deleted a rollout template of")
_MOST: Final = 30


def list_of(*, actor: User, team: Team) -> list[RolloutTemplate]:
    policy.require(actor, Action.VIEW, team)
    return list(RolloutTemplate.objects.filter(team=team).select_related("team", "saved_by"))


def get(*, actor: User, team: Team, template_id: int) -> RolloutTemplate:
    policy.require(actor, Action.VIEW, team)
    rows = RolloutTemplate.objects.filter(team=team).select_related("team", "saved_by")
    template = rows.filter(pk=template_id).first()
    if template is None:
        raise NotFound(f"Rollout template {template_id} does not exist in {team.slug}.")
    return template


def save(
    *,
    actor: User,
    team: Team,
    name: str,
    steps: Sequence[dict[str, Any]],
    plan: Mapping[str, Any],
) -> RolloutTemplate:
    """Save a template. One of the same name is replaced. Raises Invalid for a plan that no request could have,
    and Conflict if the team has too many.
    """
    policy.require(actor, Action.REQUEST_CHANGE, team)
    kept = _checked_name(name)
    with rejections.as_invalid():
        checked = rollout_plan.check(plan, list(steps))
    templates = RolloutTemplate.objects.filter(team=team)
    old = templates.filter(name=kept).first()
    if old is None and templates.count() >= _MOST:
        raise Conflict(
            f"A team can have at most {_MOST} templates. Delete one first.", code="too_many"
        )
    after = plans.columns_of(checked)
    with transaction.atomic():
        template, _ = RolloutTemplate.objects.update_or_create(
            team=team,
            name=kept,
            defaults={**after, "saved_by": actor, "saved_at": clock.now()},
        )
        trail.record(
            actor=actor,
            action=SAVED,
            obj=template,
            label=f"{team.slug}: {kept}",
            team_slug=team.slug,
            before=_columns(old) if old else None,
            after=after,
        )
    return template


def remove(*, actor: User, team: Team, template_id: int) -> None:
    """Delete a template. Rollouts that began from it keep their own copy."""
    template = get(actor=actor, team=team, template_id=template_id)
    policy.require(actor, Action.REQUEST_CHANGE, team)
    with transaction.atomic():
        trail.record(
            actor=actor,
            action=REMOVED,
            obj=template,
            label=f"{team.slug}: {template.name}",
            team_slug=team.slug,
            before=_columns(template),
        )
        template.delete()


def _columns(template: RolloutTemplate) -> dict[str, Any]:
    return {"plan": template.plan, "steps": template.steps}


def _checked_name(name: str) -> str:
    kept = name.strip()
    if not kept or len(kept) > 60:
        raise Invalid(
            "Enter a name of at most 60 characters.",
            fields={"name": "1 to 60 characters"},
        )
    return kept
