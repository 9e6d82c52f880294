"""The page of a model: its environments, versions with metrics, and rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from deployments.models import Deployment, Model, ModelVersion
from deployments.pages.selectors import model_board
from deployments.quality.web import lines
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.selectors import versions as registry_versions
from deployments.registry.services import models as model_service
from deployments.registry.web.charts import metric_over_versions
from deployments.registry.web.forms import ModelForm
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import markdown
from portal.ui.access import keeps_input, people_only
from portal.ui.addresses import with_query
from portal.ui.htmx import respond

_PER_PAGE = 50
_MAX_METRICS = 4


@dataclass(frozen=True, slots=True)
class ModelVersionRow:
    version: ModelVersion
    metrics: list[Any]
    serving: list[Deployment]
    # Ticked when the page opens, so that the button compares the newest two.
    is_compared: bool


@dataclass(frozen=True, slots=True)
class MetricTab:
    name: str
    address: str
    is_chosen: bool


@require_GET
@people_only
def model_page(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    model = registry_versions.get_model(actor=user, team_slug=team, name=name)
    rows = registry_versions.list_versions(actor=user, model=model).order_by("-number")
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    versions = list(page)
    metrics = version_metadata.metric_names(v.metadata for v in versions)
    chosen = request.GET.get("metric", "")
    chosen = chosen if chosen in metrics else next(iter(metrics), "")
    serving = registry_versions.deployments_serving([version.pk for version in versions])
    context = {
        "model": model,
        "page": page,
        "metrics": metrics[:_MAX_METRICS],
        "metric_tabs": [MetricTab(m, with_query(request, metric=m), m == chosen) for m in metrics],
        "has_datasets": any(v.metadata.get("dataset_version") for v in versions),
        "rows": _rows(versions, metrics[:_MAX_METRICS], serving),
        "aliases": model.aliases.select_related("version"),
        "chart": metric_over_versions(versions, chosen, serving) if chosen else None,
        "description": markdown.render(model.description),
        "golden_lines": lines.golden_lines(model),
        "board": model_board.build_board(actor=user, model=model),
        "rollouts": model_board.list_rollouts(model),
        "can_upload": policy.is_allowed(user, Action.UPLOAD, model),
    }
    return respond(request, "pages/model.html", context)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def edit_model(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    model = registry_versions.get_model(actor=user, team_slug=team, name=name)
    policy.require(user, Action.UPLOAD, model)
    initial = {"task": model.task, "description": model.description}
    form = ModelForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.run(lambda: _describe(user, model, form)) is not None:
        return HttpResponseRedirect(reverse("model", args=[team, name]))
    context = {"model": model, "form": form}
    return respond(request, "pages/edit_model.html", context, status=form.status)


def _describe(user: User, model: Model, form: ModelForm) -> Model:
    return model_service.describe(
        actor=user, team_slug=model.team.slug, name=model.name, **form.cleaned_data
    )


def _rows(
    versions: list[ModelVersion],
    metrics: list[str],
    serving: Mapping[int, list[Deployment]],
) -> list[ModelVersionRow]:
    newest = [v.pk for v in versions if v.state == VersionState.READY][:2]
    return [
        ModelVersionRow(
            version=version,
            metrics=[version_metadata.metrics_of(version.metadata).get(m) for m in metrics],
            serving=serving.get(version.pk, []),
            is_compared=version.pk in newest,
        )
        for version in versions
    ]
