"""Presets of the platform and of teams: saved by name, used as a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from deployments import rejections
from deployments.changes.domain import preset_settings
from deployments.changes.selectors import presets
from deployments.changes.services import clones
from deployments.models import DeploymentPreset
from deployments.registry.selectors import versions
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

SAVED = register("deployment_preset.saved", "saved a deployment preset of")
REMOVED = register("deployment_preset.removed", "deleted a deployment preset of")
_MOST: Final = 30


def save(
    *, actor: User, team: Team | None, name: str, settings: Mapping[str, Any]
) -> DeploymentPreset:
    """Save a preset of the team, or of the platform if there is no team. One of the same name is replaced. Raises
    Invalid for settings that no request could have, Conflict if there are too many.
    """
    _require_manager(actor, team)
    kept = _clean_name(name)
    with rejections.as_invalid("settings."):
        preset_settings.check(settings)
    rows = DeploymentPreset.objects.filter(team=team)
    old = rows.filter(name=kept).first()
    if old is None and rows.count() >= _MOST:
        owner = "A team" if team else "The platform"
        raise Conflict(
            f"{owner} can have at most {_MOST} presets. Delete one first.", code="too_many"
        )
    after = {"settings": dict(settings)}
    with transaction.atomic():
        preset, _ = DeploymentPreset.objects.update_or_create(
            team=team, name=kept, defaults={**after, "saved_by": actor, "saved_at": clock.now()}
        )
        trail.record(
            actor=actor,
            action=SAVED,
            obj=preset,
            label=_label(preset),
            team_slug=team.slug if team else "",
            before={"settings": old.settings} if old else None,
            after=after,
        )
    return preset


def remove(*, actor: User, team: Team | None, preset_id: int) -> None:
    """Delete a preset of the team, or of the platform if there is no team. Deployments keep their own copy."""
    _require_manager(actor, team)
    preset = DeploymentPreset.objects.filter(team=team, pk=preset_id).first()
    if preset is None:
        raise NotFound(f"Preset {preset_id} does not exist{f' in {team.slug}' if team else ''}.")
    with transaction.atomic():
        trail.record(
            actor=actor,
            action=REMOVED,
            obj=preset,
            label=_label(preset),
            team_slug=team.slug if team else "",
            before={"settings": preset.settings},
        )
        preset.delete()


def may_manage(actor: User, team: Team | None) -> bool:
    """Return whether the actor may save and delete presets of the team, or those of the platform."""
    if team is None:
        return actor.is_platform_admin
    return policy.is_allowed(actor, Action.MANAGE_PRESETS, team)


def read_deployment(*, actor: User, team: Team, name: str) -> dict[str, Any]:
    """Return the settings of the team's deployment of that name. Raises NotFound, Conflict without a revision."""
    return preset_settings.pick(clones.request_body(actor=actor, team=team, name=name)["spec"])


def apply(
    *, actor: User, preset_id: int, version_id: int, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the spec with the preset's settings for all that it leaves out. Raises NotFound for a preset of
    another team than the version's.
    """
    team = versions.get_version(actor=actor, version_id=version_id).team
    preset = presets.get_preset(actor=actor, team=team, preset_id=preset_id)
    return preset_settings.apply(preset.settings, spec)


def _require_manager(actor: User, team: Team | None) -> None:
    if team is None:
        policy.require_platform_admin(actor)
    else:
        policy.require(actor, Action.MANAGE_PRESETS, team)


def _label(preset: DeploymentPreset) -> str:
    return f"{preset.team.slug if preset.team else 'all teams'}: {preset.name}"


def _clean_name(name: str) -> str:
    kept = name.strip()
    if not kept or len(kept) > 60:
        raise Invalid(
            "Enter a name of at most 60 characters.", fields={"name": "1 to 60 characters"}
        )
    return kept
