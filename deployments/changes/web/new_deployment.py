"""A new deployment: one page with five open fields, whose unsent form is kept as a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.changes.selectors import changes
from deployments.changes.services import presets as preset_services
from deployments.changes.services import requests
from deployments.changes.web import (
    config_text,
    draft_yaml,
    engine_choices,
    form_drafts,
    gpu_choice,
    new_deployment_cards,
    prefill,
    request_body,
    sections,
    setting_suggestions,
    start_from,
    suggestions,
    version_choice,
)
from deployments.changes.web import settings as change_settings
from deployments.changes.web.config_text import ConfigText
from deployments.changes.web.draft import Draft, build
from deployments.changes.web.draft_yaml import YamlForm
from deployments.changes.web.form import FIELDS
from deployments.changes.web.prefill import Prefill
from deployments.changes.web.presets import KeepPresetForm
from deployments.changes.web.request_body import ADDITIONAL_MODELS
from deployments.changes.web.settings import SettingView
from deployments.changes.web.start_from import StartPoint
from deployments.manifests.web.yaml_files import manifests_of_text
from deployments.models import ChangeRequest
from deployments.spec.domain.engines import LLM_ENGINES
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import neuron
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import is_partial, respond, target_of

# Missing, not wrong, until a version is chosen.
_NEED_VERSION = ("version", "name", "share")


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def new_deployment(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    policy.require(user, Action.REQUEST_CHANGE, owner)
    if request.method == "GET":
        return _show_matches(request, user, owner) or _show_first(request, user, owner)
    if request.POST.get("as") == "yaml":
        return _answer_yaml(request, user, owner)
    return _answer_form(request, user, owner)


def _show_first(request: HttpRequest, user: User, team: Team) -> HttpResponse:
    first = prefill.read(request, user, team)
    draft = build(user, team, first.fields, replaced=first.replaced)
    if draft.version is None and not first.source and not first.draft:
        only = version_choice.find_only(user=user, team=team)
        fields = {**first.fields, "version": str(only.pk)} if only else {}
        draft = build(user, team, fields) if only else draft
    is_filled = bool(first.start or first.draft)
    for name in [*draft.form.errors]:
        # A preset, a deployment or a draft may have a value that is refused by now.
        if not is_filled or name not in first.fields:
            del draft.form.errors[name]
    return _show(request, draft, first=first)


def _show_matches(request: HttpRequest, user: User, team: Team) -> HttpResponse | None:
    """Return the matches of a search field of the form. None for any other request."""
    target = target_of(request)
    if target not in ("versions", "addable"):
        return None
    version_id = request.GET.get("version", "")
    chosen = version_choice.find(user=user, team=team, version_id=version_id)
    if target == "versions":
        query = request.GET.get("q", "")
        context = {
            "offer": version_choice.offer(user=user, team=team, query=query, chosen=chosen),
            "version": chosen,
            "chosen_version": version_id,
        }
        return render(request, "changes/_new_versions.html", context)
    typed = next((request.GET[name] for name in ADDITIONAL_MODELS if name in request.GET), "")
    labels = version_choice.addable_labels(user=user, team=team, query=typed, beside=chosen)
    return render(request, "changes/_new_addable.html", {"labels": labels})


def _answer_form(request: HttpRequest, user: User, team: Team) -> HttpResponse:
    typed, shown = _read_fields(request), suggestions.read_posted(request.POST)
    replaced, start = (
        _find_replaced(request.POST, user, team),
        start_from.read(request.POST, user, team),
    )
    if start.is_new:
        former = start_from.read_former(request.POST, user, team)
        typed, shown = start_from.fill(typed, shown, start, former)
    draft = build(user, team, typed, shown, replaced=replaced)
    config = None if start.is_new else config_text.build_for_draft(draft, request.POST)
    if config is not None and config.changes is not None:
        draft = build(user, team, {**typed, **config.changes}, shown, replaced=replaced)
    form_drafts.save(draft, request.POST, start.value)
    is_search = request.POST.get("q", "") != request.POST.get("q_shown", "")
    if is_partial(request) or is_search:
        _forget_missing(draft)
        return _show(request, draft, config=config, start=start)
    if config is not None and config.is_refused:
        return _show(request, draft, config=config, start=start)
    if request.POST.get("view") == "yaml":
        return _show(request, draft, config=config, start=start, shown_as="yaml")
    if request.POST.get("go") == "keep":
        return _keep(request, draft, config, start)
    # What was only just filled in is shown before it is sent.
    if request.POST.get("go") == "submit" and not start.is_new:
        return _submit(request, draft)
    return _show(request, draft, config=config, start=start)


def _answer_yaml(request: HttpRequest, user: User, team: Team) -> HttpResponse:
    form = YamlForm(request.POST)
    data = _read_fields(request)
    if form.is_valid():
        try:
            # What sizes the deployment is not in the request.
            data = {**data, **draft_yaml.read(form.cleaned_data["yaml"])}
        except forms.ValidationError as error:
            form.add_error("yaml", error)
    draft = build(user, team, data, replaced=_find_replaced(request.POST, user, team))
    if not form.is_valid():
        draft.form.errors.clear()
        return _show(request, draft, shown_as="yaml", yaml_form=form)
    form_drafts.save(draft, request.POST, request.POST.get(start_from.FILLED, ""))
    is_yaml = is_partial(request) or request.POST.get("view") == "yaml"
    return _show(request, draft, shown_as="yaml" if is_yaml else "form")


def _submit(request: HttpRequest, draft: Draft) -> HttpResponse:
    requested, comment = draft.requested, draft.data.get("comment", "")
    replaces_id = draft.replaced.pk if draft.replaced else None
    change = None
    if requested is not None:
        change = draft.form.run(
            lambda: requests.request_deploy(
                actor=draft.user, draft=requested, comment=comment, replaces_id=replaces_id
            )
        )
    if change is None:
        return _show(request, draft)
    form_drafts.mark_sent(draft, request.POST)
    messages.success(request, "Request sent. Waiting for an approver.")
    return redirect("change", change_id=change.pk)


def _keep(
    request: HttpRequest, draft: Draft, config: ConfigText | None, start: StartPoint
) -> HttpResponse:
    """Save the settings of the form as a preset, and show the form as it was."""
    keep_form = KeepPresetForm(request.POST)
    settings = start_from.settings_of(draft.data, draft.suggestions)
    kept = keep_form.keep_preset(user=draft.user, team=draft.team, settings=settings)
    draft.form.errors.clear()
    if kept is None:
        return _show(request, draft, config=config, start=start, keep_form=keep_form)
    owner = kept.team.slug if kept.team else "the platform"
    messages.success(request, f"“{kept.name}” is saved as a preset of {owner}.")
    return _show(request, draft, config=config, start=start)


def _find_replaced(query: QueryDict, user: User, team: Team) -> ChangeRequest | None:
    """Return the request in whose place the form sends one. Sending it checks whether that is possible."""
    change_id = query.get("replaces", "")
    if not change_id.isdecimal():
        return None
    change = changes.get_visible(actor=user, change_id=int(change_id))
    return change if change.team_id == team.pk and change.requester_id == user.pk else None


def _read_fields(request: HttpRequest) -> dict[str, str]:
    return {name: str(request.POST[name]) for name in FIELDS if name in request.POST}


def _forget_missing(draft: Draft) -> None:
    """Remove the errors of fields that cannot be right before a version is chosen."""
    for name in _NEED_VERSION:
        if draft.version is None and not draft.data.get(name):
            draft.form.errors.pop(name, None)


def _show(
    request: HttpRequest,
    draft: Draft,
    *,
    shown_as: str = "form",
    yaml_form: YamlForm | None = None,
    config: ConfigText | None = None,
    first: Prefill | None = None,
    start: StartPoint | None = None,
    keep_form: KeepPresetForm | None = None,
) -> HttpResponse:
    config = config or config_text.build_for_draft(draft, {})
    context = {
        **_describe_fields(draft),
        **_describe_side(draft, request),
        "sections": sections.list_sections(draft, config),
        "offer": _offer_versions(draft, request),
        "side_problems": new_deployment_cards.problems_of(yaml_form or draft.form),
        "shown_as": shown_as,
        "yaml_form": yaml_form or YamlForm(initial={"yaml": draft_yaml.text_of(draft.data)}),
        "is_partial": is_partial(request),
        "config": config,
        "first": first,
        "replaced": draft.replaced,
        **_describe_start(request, draft, start, first),
        **_describe_drafts(request, draft, first),
        "keep_form": keep_form or KeepPresetForm(),
        "may_keep": not is_partial(request) and preset_services.may_manage(draft.user, draft.team),
        "may_keep_for_all": preset_services.may_manage(draft.user, None),
    }
    status = draft.form.status if draft.form.errors else HTTPStatus.OK
    if keep_form is not None:
        status = HTTPStatus(keep_form.status)
    if config is not None and config.is_refused:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    if is_partial(request) or first is not None:
        status = HTTPStatus.OK
    parts = {"side": "changes/_new_swap.html"}
    return respond(request, "changes/new.html", context, parts=parts, status=status)


def _describe_start(
    request: HttpRequest, draft: Draft, start: StartPoint | None, first: Prefill | None
) -> dict[str, Any]:
    """Describe the control "Start from". A fragment leaves its choices as they are."""
    filled = first.start if first else request.POST.get(start_from.FILLED, "")
    start = start or StartPoint(filled)
    is_share_refused = bool(start.value and draft.form.errors.get("share"))
    return {
        "start": start,
        # The page has the control only if there is something to start from.
        "has_start": start_from.CHOSEN in request.POST,
        # No radio button has it: without this field it would be exchanged for another when the form is sent.
        "refused_share": draft.data.get("share", "") if is_share_refused else "",
        "start_label": start_from.describe(start.value, draft.user, draft.team),
        "start_groups": ()
        if is_partial(request)
        else start_from.list_groups(draft.user, draft.team),
    }


def _describe_drafts(request: HttpRequest, draft: Draft, first: Prefill | None) -> dict[str, Any]:
    """Describe the draft that the form is saved as, and those that may be continued when it opens."""
    if first is None:
        return {"draft_key": request.POST.get(form_drafts.KEY, "")}
    if first.draft is not None:
        return {"draft_key": first.draft.key, "continued": first.draft}
    offered = form_drafts.list_drafts(draft.user, draft.team)
    return {"draft_key": form_drafts.make_key(), "drafts": offered}


def _describe_fields(draft: Draft) -> dict[str, Any]:
    allowed, rejected = gpu_choice.rows_of(
        draft.advice, draft.shares, chosen=draft.data.get("share", "")
    )
    settings = setting_suggestions.add_suggestions(
        change_settings.settings_of(draft.form, draft.data, draft.cluster), draft
    )
    return {
        "team": draft.team,
        "form": draft.form,
        "version": draft.version,
        "has_versions": _has_versions(draft),
        "labels": (),
        "chosen_version": draft.data.get("version", ""),
        "engines": engine_choices.engine_choices(draft.cluster, draft.version),
        "weights": new_deployment_cards.weights_of(draft.version),
        "is_language": draft.data.get("engine") in LLM_ENGINES,
        "settings": settings,
        "suggested": draft.suggestions.inputs,
        "groups": change_settings.groups_of(settings),
        "triton_sections": change_settings.triton_sections(settings),
        "scaling_parts": change_settings.parts_of(settings, "scaling"),
        "version_weights": _list_version_weights(draft, settings),
        "default_target": change_settings.default_target(draft.data),
        "sizing": gpu_choice.card_of(draft.advice),
        "shares": allowed,
        "rejected_shares": rejected,
        "has_neuron": any(share.gpu_resource == neuron.DEVICE for share in draft.shares),
        "shares_reason": draft.shares_reason,
        "unlabelled_note": draft.unlabelled_note,
        "cluster_note": _describe_cluster(draft.cluster),
        "address": _build_address(draft),
    }


def _has_versions(draft: Draft) -> bool:
    return draft.version is not None or version_choice.has_any(user=draft.user, team=draft.team)


def _offer_versions(draft: Draft, request: HttpRequest) -> version_choice.VersionOffer | None:
    """Return the versions to choose from. None for a fragment, which leaves them as they are."""
    if is_partial(request):
        return None
    query = request.POST.get("q", "")
    return version_choice.offer(user=draft.user, team=draft.team, query=query, chosen=draft.version)


def _list_version_weights(
    draft: Draft, settings: Mapping[str, SettingView]
) -> Sequence[SettingView]:
    """Return the fields that are not shown because the version names its weights."""
    if new_deployment_cards.weights_of(draft.version) is None:
        return []
    weights = (settings["llm_hugging_face_id"], settings["llm_artifact"])
    return [view for view in weights if not view.value]


def _describe_side(draft: Draft, request: HttpRequest) -> dict[str, Any]:
    checked, problem = new_deployment_cards.preflight_of(draft.user, draft.requested)
    url = request.build_absolute_uri("/api/v1/deployments")
    return {
        "fit": new_deployment_cards.fit_of(checked),
        "preflight": checked,
        "checks": new_deployment_cards.sort_checks(checked),
        "side_problem": problem,
        "cost": checked.cost if checked else None,
        "cost_card": new_deployment_cards.cost_card(checked.cost if checked else None),
        "vram": new_deployment_cards.vram_of(draft.advice, draft.share),
        "cold_start": new_deployment_cards.cold_start_of(draft.version, draft.data),
        "manifests": manifests_of_text(checked.manifests) if checked else None,
        "snippets": draft_yaml.snippets(body=request_body.body_of(draft.data), url=url),
    }


def _describe_cluster(cluster: ClusterInfo | None) -> str:
    if cluster is None:
        return ""
    if cluster.is_reachable is False:
        return f"does not answer: {cluster.last_error}"
    return change_settings.describe_cluster(cluster)


def _build_address(draft: Draft) -> str:
    gateway = draft.cluster.gateway_url if draft.cluster else ""
    return f"{gateway}/{draft.team.slug}/{draft.data.get('name') or '…'}"
