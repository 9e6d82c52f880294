"""Drafts of the form of a new deployment: saved with each change, continued, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from deployments.changes.selectors import form_drafts as draft_selectors
from deployments.changes.selectors.form_drafts import OfferedDraft
from deployments.changes.services import form_drafts
from deployments.changes.web import request_body, start_from
from deployments.changes.web.draft import Draft
from deployments.changes.web.form import FIELDS, DeployForm
from portal.accounts.models import Team, User
from portal.ui import teams
from portal.ui.access import people_only

# The hidden field with the draft's key.
KEY: Final = "draft"
# Beside the form's fields: the request that is replaced.
REPLACES: Final = "replaces"
_WITH_DEFAULT: Final = frozenset(
    {*request_body.SETTINGS, *request_body.ADDITIONAL_MODELS, "cpu", "memory", "environment"}
)


def save(draft: Draft, posted: Mapping[str, str], start: str = "") -> None:
    """Save what a person typed into the form. What the portal chose is chosen again when it is continued."""
    fields = {name: draft.data[name] for name in FIELDS if _is_typed(draft, name)}
    if draft.replaced is not None:
        fields[REPLACES] = str(draft.replaced.pk)
    if start and fields:
        fields[start_from.FILLED] = start
    label = draft.version.label if draft.version else ""
    form_drafts.save(
        actor=draft.user,
        team=draft.team,
        key=posted.get(KEY, ""),
        fields=fields,
        version_label=label,
    )


def mark_sent(draft: Draft, posted: Mapping[str, str]) -> None:
    form_drafts.mark_sent(actor=draft.user, team=draft.team, key=posted.get(KEY, ""))


def list_drafts(user: User, team: Team) -> list[OfferedDraft]:
    return draft_selectors.list_drafts(user=user, team=team)


def make_key() -> str:
    return form_drafts.make_key()


def _is_typed(draft: Draft, name: str) -> bool:
    text = draft.data.get(name, "")
    if not text.strip(" |") or name in draft.suggestions.values:
        return False
    return name not in _WITH_DEFAULT or text != request_body.DEFAULTS.get(name, "")


def describe_left_out(names: Sequence[str]) -> str:
    """Name the fields that must be typed again. Empty if there are none."""
    labels = [_label_of(name) for name in names]
    return f"Not kept, as it may hold a secret: {', '.join(labels)}." if labels else ""


def _label_of(name: str) -> str:
    setting = request_body.SETTINGS.get(name)
    field = DeployForm.base_fields.get(name)
    return setting.definition.label if setting else str(field.label if field else name)


@require_POST
@people_only
def delete(request: HttpRequest, user: User, team: str, key: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    form_drafts.delete(actor=user, team=owner, key=key)
    messages.success(request, "Draft deleted.")
    is_from_form = request.POST.get("back") == "form"
    return redirect("new-deployment" if is_from_form else "deployments", team=owner.slug)
