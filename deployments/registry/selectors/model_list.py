"""The Models table: a page of models and related rows in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery

from deployments.models import Alias, Deployment, Model, ModelVersion
from deployments.registry.selectors import version_search, versions
from deployments.registry.selectors.version_search import VersionFilter
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.policy import Actor

SORTS: Final = {
    "name": ("team__slug", "name"),
    "-name": ("-team__slug", "-name"),
    "changed": ("changed_at", "id"),
    "-changed": ("-changed_at", "-id"),
    "task": ("task", "team__slug", "name"),
    "-task": ("-task", "team__slug", "name"),
}


@dataclass(frozen=True, slots=True)
class ModelFilter:
    team_slug: str = ""
    search: str = ""
    task: str = ""
    label: tuple[str, ...] = ()
    framework: str = ""
    state: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class ModelRow:
    model: Model
    latest: ModelVersion | None
    aliases: Sequence[Alias]
    serving: Sequence[Deployment]


def list_models(*, actor: Actor, filters: ModelFilter) -> QuerySet[Model]:
    """List matching models. The version filters must all match the same version."""
    rows = Model.objects.filter(team__in=policy.visible_teams(actor))
    if filters.team_slug:
        rows = rows.filter(team__slug=filters.team_slug)
    for word in filters.search.split()[:5]:
        rows = rows.filter(
            Q(name__icontains=word) | Q(description__icontains=word) | Q(task__icontains=word)
        )
    if filters.task:
        rows = rows.filter(task=filters.task)
    if filters.label or filters.framework or filters.state or filters.format:
        rows = rows.filter(Exists(_matching_versions(filters)))
    aliases = Alias.objects.select_related("version").defer(
        *(f"version__{name}" for name in versions.LARGE)
    )
    return rows.select_related("team", "created_by").prefetch_related(
        Prefetch("aliases", aliases.order_by("name"))
    )


def with_joins(models: Collection[Model]) -> list[ModelRow]:
    """Add what rows of models show, in two additional queries for any number of models."""
    latest = _latest_versions([model.pk for model in models])
    serving = deployments_of_models([model.pk for model in models])
    return [
        ModelRow(
            model=model,
            latest=latest.get(model.pk),
            aliases=list(model.aliases.all()),
            serving=serving.get(model.pk, []),
        )
        for model in models
    ]


def deployments_of_models(model_ids: Collection[int]) -> dict[int, list[Deployment]]:
    rows = versions.live_deployments().filter(
        Q(stable_revision__version__model_id__in=model_ids)
        | Q(candidate_revision__version__model_id__in=model_ids)
    )
    by_model: dict[int, list[Deployment]] = {}
    for deployment in rows:
        revisions = (deployment.stable_revision, deployment.candidate_revision)
        for model_id in {r.version.model_id for r in revisions if r is not None}:
            by_model.setdefault(model_id, []).append(deployment)
    return by_model


def _matching_versions(filters: ModelFilter) -> QuerySet[ModelVersion]:
    rows = ModelVersion.objects.filter(model=OuterRef("pk"), discarded_at=None)
    if filters.framework:
        rows = rows.filter(metadata__framework__icontains=filters.framework)
    chosen = VersionFilter(labels=filters.label, state=filters.state, format=filters.format)
    return version_search.matching(rows, chosen)


def _latest_versions(model_ids: Collection[int]) -> dict[int, ModelVersion]:
    """Return the newest version of each model that did not fail."""
    of_model = ModelVersion.objects.filter(model_id=OuterRef("pk"))
    newest = of_model.exclude(state=VersionState.FAILED).order_by("-number").values("pk")[:1]
    latest = Model.objects.filter(pk__in=model_ids).values(latest=Subquery(newest))
    rows = ModelVersion.objects.filter(pk__in=latest).only("model_id", "number", "state")
    return {version.model_id: version for version in rows}
