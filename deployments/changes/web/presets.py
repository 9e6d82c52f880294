"""Presets of deployments: saved from the form of a new deployment, listed and deleted on a page of the team."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from deployments.changes.selectors import presets as preset_selectors
from deployments.changes.services import presets
from deployments.changes.web import request_body, start_from
from deployments.models import DeploymentPreset
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.ui.access import people_only
from portal.ui.service_form import ServiceForm


class KeepPresetForm(ServiceForm):
    """The name of a preset that is saved from the form of a new deployment."""

    renamed: ClassVar[Mapping[str, str]] = {"name": "keep_as"}

    keep_as = forms.CharField(
        label="Name",
        max_length=60,
        help_text="A preset of this name is replaced. Version, name, environment variables and what was "
        "chosen for the version are not part of it.",
        error_messages={"required": "Enter a name for the preset."},
    )
    keep_for_all = forms.BooleanField(label="For all teams", required=False)

    def keep_preset(
        self, *, user: User, team: Team, settings: Mapping[str, Any]
    ) -> DeploymentPreset | None:
        """Save the settings under the name that was typed. None if that is refused."""
        return self.run(
            lambda: presets.save(
                actor=user,
                team=None if self.cleaned_data["keep_for_all"] else team,
                name=self.cleaned_data["keep_as"],
                settings=settings,
            )
        )


@dataclass(frozen=True, slots=True)
class PresetItem:
    row: DeploymentPreset
    settings: Sequence[tuple[str, str]]
    may_remove: bool


@require_GET
@people_only
def preset_list(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    rows = preset_selectors.list_presets(actor=user, team=team)
    may_manage = {
        False: presets.may_manage(user, team),
        True: presets.may_manage(user, None),
    }
    context = {
        "team": team,
        "items": [
            PresetItem(row, describe_settings(row.settings), may_manage[row.team_id is None])
            for row in rows
        ],
        "can_request": policy.is_allowed(user, Action.REQUEST_CHANGE, team),
        "may_save": any(may_manage.values()),
        "manages_team": policy.is_allowed(user, Action.MANAGE_MEMBERS, team),
    }
    return render(request, "changes/presets.html", context)


@require_POST
@people_only
def remove(request: HttpRequest, user: User, slug: str, preset_id: int) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    preset = preset_selectors.get_preset(actor=user, team=team, preset_id=preset_id)
    presets.remove(actor=user, team=preset.team, preset_id=preset_id)
    messages.success(request, "Preset deleted. Existing deployments are not affected.")
    return redirect("deployment-presets", slug=slug)


def describe_settings(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the label and the value in words of each setting."""
    fields = start_from.fields_of(settings)
    share = fields.pop("share", "")
    described = [("GPU", _describe_share(share))] if share else []
    for name in sorted(fields, key=_ORDER.index):
        setting = request_body.SETTINGS.get(name)
        definition = setting.definition if setting else request_body.DEFINITIONS[name]
        text = fields[name]
        words = f"{definition.choices.get(text, text)} {definition.unit}".strip()
        described.append((definition.label, words or "none"))
    return described


_ORDER = ["engine", *request_body.SIZES, *request_body.SETTINGS]


def _describe_share(share: str) -> str:
    instance_type, resource, count = share.split("|")
    part = "" if resource == "nvidia.com/gpu" else f" {resource.partition('/')[2]}"
    return f"{count} \N{MULTIPLICATION SIGN} {instance_type}{part}"
