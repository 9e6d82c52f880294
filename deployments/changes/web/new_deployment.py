"""A new deployment: one address, four steps, nothing stored between requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.changes.services import requests
from deployments.changes.web import (
    config_text,
    draft_yaml,
    engine_choices,
    gpu_choice,
    new_deployment_cards,
    promotion,
    request_body,
    review,
    setting_suggestions,
    version_choice,
)
from deployments.changes.web import settings as change_settings
from deployments.changes.web.config_text import ConfigText
from deployments.changes.web.draft import Draft, build
from deployments.changes.web.draft_yaml import YamlForm
from deployments.changes.web.form import (
    STEP_NAMES,
    STEPS,
    DeployForm,
    FormStep,
    is_back,
    step_to_show,
)
from deployments.changes.web.request_body import ADDITIONAL_MODELS
from deployments.changes.web.settings import SettingView
from deployments.changes.web.version_choice import VersionOffer
from deployments.manifests.web.yaml_files import manifests_of_text
from deployments.spec.domain.engines import LLM_ENGINES
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import neuron
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import is_partial, respond, target_of

_FIELDS = tuple(name for step in STEPS for name in step.fields)
_CONFIG_STEP = "scaling"


@dataclass(frozen=True, slots=True)
class PlannedStepItem:
    step: FormStep
    # "done", "on" or "".
    tone: str


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def new_deployment(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    policy.require(user, Action.REQUEST_CHANGE, owner)
    if request.method == "GET":
        return _suggestions(request, user, owner) or _first_page(request, user, owner)
    if request.POST.get("as") == "yaml":
        return _from_yaml(request, user, owner)
    is_choosing = request.POST.get("at", "model") == "model"
    draft = build(user, owner, _posted(request), is_choosing_version=is_choosing)
    return _from_form(request, draft)


def _first_page(request: HttpRequest, user: User, team: Team) -> HttpResponse:
    draft = build(user, team, promotion.prefill_form(request, user))
    at = "serving" if draft.version else "model"
    only = None if draft.version else version_choice.find_only(user=user, team=team)
    if only is not None:
        draft = build(user, team, {"version": str(only.pk)})
    draft.form.errors.clear()
    return _show(request, draft, at=at)


def _suggestions(request: HttpRequest, user: User, team: Team) -> HttpResponse | None:
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
            "chosen_version": version_id,
        }
        return render(request, "changes/_new_versions.html", context)
    typed = next((request.GET[name] for name in ADDITIONAL_MODELS if name in request.GET), "")
    labels = version_choice.addable_labels(user=user, team=team, query=typed, beside=chosen)
    return render(request, "changes/_new_addable.html", {"labels": labels})


def _from_form(request: HttpRequest, draft: Draft) -> HttpResponse:
    at, go = request.POST.get("at", "model"), request.POST.get("go", "")
    if at == "model" and request.POST.get("q", "") != request.POST.get("q_shown", ""):
        # Enter in the search field sends the form.
        draft.form.errors.clear()
        go = "model"
    config = config_text.build_for_draft(draft, request.POST) if at == _CONFIG_STEP else None
    if config is not None and config.changes is not None:
        draft = build(draft.user, draft.team, {**_posted(request), **config.changes})
    if is_partial(request):
        return _show(request, draft, at=at, config=config)
    if config is not None and config.is_refused and not is_back(at=at, target=go):
        return _show(request, draft, at=at, config=config)
    if request.POST.get("view") == "yaml":
        return _show(request, draft, at=at, shown_as="yaml")
    if go == "submit":
        return _submit(request, draft)
    target = go if go in STEP_NAMES else at
    _forget_errors_after(draft.form, at, is_back=is_back(at=at, target=target))
    return _show(request, draft, at=step_to_show(draft.form, at=at, target=target))


def _from_yaml(request: HttpRequest, user: User, team: Team) -> HttpResponse:
    form = YamlForm(request.POST)
    data = _posted(request)
    at = request.POST.get("at", "model")
    if form.is_valid():
        try:
            data = draft_yaml.read(form.cleaned_data["yaml"])
        except forms.ValidationError as error:
            form.add_error("yaml", error)
    draft = build(user, team, data)
    if not form.is_valid():
        draft.form.errors.clear()
        return _show(request, draft, at=at, shown_as="yaml", yaml_form=form)
    if is_partial(request) or request.POST.get("view") == "yaml":
        return _show(request, draft, at=at, shown_as="yaml")
    return _show(request, draft, at=draft.form.first_wrong_step())


def _submit(request: HttpRequest, draft: Draft) -> HttpResponse:
    requested, comment = draft.requested, draft.data.get("comment", "")
    change = None
    if requested is not None:
        change = draft.form.run(
            lambda: requests.request_deploy(actor=draft.user, draft=requested, comment=comment)
        )
    if change is None:
        return _show(request, draft, at=draft.form.first_wrong_step())
    messages.success(request, "Request sent. Waiting for an approver.")
    return redirect("change", change_id=change.pk)


def _posted(request: HttpRequest) -> dict[str, str]:
    return {name: str(request.POST[name]) for name in _FIELDS if name in request.POST}


def _forget_errors_after(form: DeployForm, at: str, *, is_back: bool) -> None:
    """Remove the errors of steps that were not visited yet. Going back shows none at all."""
    if is_back or at not in STEP_NAMES:
        form.errors.clear()
        return
    for step in STEPS[STEP_NAMES.index(at) + 1 :]:
        for field in step.fields:
            form.errors.pop(field, None)


def _show(
    request: HttpRequest,
    draft: Draft,
    *,
    at: str,
    shown_as: str = "form",
    yaml_form: YamlForm | None = None,
    config: ConfigText | None = None,
) -> HttpResponse:
    at = at if at in STEP_NAMES else STEP_NAMES[0]
    if at == _CONFIG_STEP:
        config = config or config_text.build_for_draft(draft, {})
    context = {
        **_frame(draft, at, request.POST.get("q", "")),
        **_side(draft, request),
        "side_problems": new_deployment_cards.problems_of(yaml_form or draft.form),
        "shown_as": shown_as,
        "yaml_form": yaml_form or YamlForm(initial={"yaml": draft_yaml.text_of(draft.data)}),
        "is_partial": is_partial(request),
        "config": config,
        "target": target_of(request),
    }
    status = draft.form.status if draft.form.errors else HTTPStatus.OK
    if config is not None and config.is_refused:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    if is_partial(request):
        status = HTTPStatus.OK
    parts = {"side": "changes/_new_side.html", "triton": "changes/_new_triton_swap.html"}
    return respond(request, "changes/new.html", context, parts=parts, status=status)


def _frame(draft: Draft, at: str, query: str) -> dict[str, Any]:
    index = STEP_NAMES.index(at)
    step = STEPS[index]
    allowed, rejected = gpu_choice.rows_of(
        draft.advice, draft.shares, chosen=draft.data.get("share", "")
    )
    settings = setting_suggestions.add_suggestions(
        change_settings.settings_of(draft.form, draft.data, draft.cluster), draft
    )
    tones = ["done"] * index + ["on"] + [""] * (len(STEPS) - index - 1)
    return {
        "team": draft.team,
        "form": draft.form,
        "step": step,
        "step_template": f"changes/_new_{at}.html",
        "steps": [PlannedStepItem(item, tone) for item, tone in zip(STEPS, tones, strict=True)],
        "previous_step": STEPS[index - 1] if index else None,
        "next_step": STEPS[index + 1] if index + 1 < len(STEPS) else None,
        "hidden_fields": [draft.form[name] for name in _FIELDS if name not in step.fields],
        "version": draft.version,
        "has_versions": _has_versions(draft),
        "offer": _offer(draft, query) if at == "model" else None,
        "labels": (),
        "chosen_version": draft.data.get("version", ""),
        "engines": engine_choices.engine_choices(draft.cluster, draft.version),
        "weights": new_deployment_cards.weights_of(draft.version),
        "is_language": draft.data.get("engine") in LLM_ENGINES,
        "settings": settings,
        "groups": change_settings.groups_of(settings, draft.data),
        "triton_sections": change_settings.triton_sections(settings),
        "scaling_parts": change_settings.parts_of(settings, "scaling"),
        "version_weights": _version_weights(draft, settings),
        "default_target": change_settings.default_target(draft.data),
        "sizing": gpu_choice.card_of(draft.advice),
        "shares": allowed,
        "rejected_shares": rejected,
        "has_neuron": any(share.gpu_resource == neuron.DEVICE for share in draft.shares),
        "shares_reason": draft.shares_reason,
        "unlabelled_note": draft.unlabelled_note,
        "cluster_note": _cluster_note(draft.cluster),
        "address": _address(draft),
    }


def _has_versions(draft: Draft) -> bool:
    return draft.version is not None or version_choice.has_any(user=draft.user, team=draft.team)


def _offer(draft: Draft, query: str) -> VersionOffer:
    return version_choice.offer(user=draft.user, team=draft.team, query=query, chosen=draft.version)


def _version_weights(draft: Draft, settings: Mapping[str, SettingView]) -> Sequence[SettingView]:
    """Return the fields that are not shown because the version names its weights."""
    if new_deployment_cards.weights_of(draft.version) is None:
        return []
    weights = (settings["llm_hugging_face_id"], settings["llm_artifact"])
    return [view for view in weights if not view.value]


def _side(draft: Draft, request: HttpRequest) -> dict[str, Any]:
    checked, problem = new_deployment_cards.preflight_of(draft.user, draft.requested)
    url = request.build_absolute_uri("/api/v1/deployments")
    return {
        "fit": new_deployment_cards.fit_of(checked),
        "preflight": checked,
        "side_problem": problem,
        "cost": new_deployment_cards.cost_card(checked.cost if checked else None),
        "vram": new_deployment_cards.vram_of(draft.advice, draft.share),
        "cold_start": new_deployment_cards.cold_start_of(draft.version, draft.data),
        "manifests": manifests_of_text(checked.manifests) if checked else None,
        "chosen_steps": review.steps_of(draft),
        "refusals": review.refusals_of(checked),
        "snippets": draft_yaml.snippets(body=request_body.body_of(draft.data), url=url),
    }


def _cluster_note(cluster: ClusterInfo | None) -> str:
    if cluster is None:
        return ""
    if cluster.is_reachable is False:
        return f"does not answer: {cluster.last_error}"
    return change_settings.describe_cluster(cluster)


def _address(draft: Draft) -> str:
    gateway = draft.cluster.gateway_url if draft.cluster else ""
    return f"{gateway}/{draft.team.slug}/{draft.data.get('name') or '…'}"
