"""The presets that a deployment of a team may start from: the platform's and the team's own."""

from __future__ import annotations

from django.db.models import Q

from deployments.models import DeploymentPreset
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.errors import NotFound


def list_presets(*, actor: User, team: Team) -> list[DeploymentPreset]:
    """List the platform's presets, then those of the team."""
    policy.require(actor, Action.VIEW, team)
    rows = DeploymentPreset.objects.filter(Q(team=None) | Q(team=team))
    return sorted(
        rows.select_related("team", "saved_by"), key=lambda row: (row.team is not None, row.name)
    )


def list_platform_presets() -> list[DeploymentPreset]:
    """List the platform's presets. Everybody may see them."""
    return list(DeploymentPreset.objects.filter(team=None).select_related("team", "saved_by"))


def get_preset(*, actor: User, team: Team, preset_id: int) -> DeploymentPreset:
    """Return a preset that a deployment of the team may start from. Raises NotFound."""
    policy.require(actor, Action.VIEW, team)
    rows = DeploymentPreset.objects.filter(Q(team=None) | Q(team=team), pk=preset_id)
    preset = rows.select_related("team", "saved_by").first()
    if preset is None:
        raise NotFound(f"Preset {preset_id} does not exist in {team.slug}.")
    return preset
