"""Reading models and versions: what the actor may see, with what pages and the API join to it."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet

from deployments.domain import model_names
from deployments.domain.states import VersionState
from deployments.models import Alias, Deployment, Model, ModelVersion
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound


def get_model(*, actor: Actor, team_slug: str, name: str) -> Model:
    rows = Model.objects.select_related("team", "created_by").filter(
        team__in=policy.visible_teams(actor), team__slug=team_slug, name=name
    )
    # PostgreSQL refuses to compare with what no stored name can be.
    model = None if model_names.model_name_problem(name) else rows.first()
    if model is None:
        raise NotFound(f"There is no model {team_slug}/{name}, or you are not in its team.")
    return model


def get_alias(*, actor: Actor, team_slug: str, model_name: str, alias: str) -> Alias:
    model = get_model(actor=actor, team_slug=team_slug, name=model_name)
    rows = model.aliases.select_related("version").filter(name=alias)
    found = None if model_names.alias_problem(alias) else rows.first()
    if found is None:
        raise NotFound(f"{model} has no alias {alias}.")
    return found


def get_version(*, actor: Actor, version_id: int) -> ModelVersion:
    version = _visible(actor).filter(pk=version_id).first()
    if version is None:
        raise NotFound(f"There is no version {version_id}, or you are not in its team.")
    return version


def get_version_by_number(*, actor: Actor, team_slug: str, name: str, number: int) -> ModelVersion:
    rows = _visible(actor).filter(model__team__slug=team_slug, model__name=name, number=number)
    version = None if model_names.model_name_problem(name) else rows.first()
    if version is None:
        raise NotFound(
            f"There is no version {team_slug}/{name}:{number}, or you are not in its team."
        )
    return version


def list_versions(
    *, actor: Actor, model: Model | None = None, state: str = "", sha256: str = ""
) -> QuerySet[ModelVersion]:
    """Newest first."""
    rows = _visible(actor).prefetch_related("aliases")
    if model is not None:
        rows = rows.filter(model=model)
    if state:
        rows = rows.filter(state=state)
    if sha256:
        rows = rows.filter(sha256=sha256)
    return rows.order_by("-id")


def list_ready_versions(*, actor: Actor, team_slug: str | None = None) -> QuerySet[ModelVersion]:
    """What may be deployed now, grouped by model, newest first."""
    rows = _visible(actor).filter(state=VersionState.READY)
    if team_slug:
        rows = rows.filter(model__team__slug=team_slug)
    return rows.order_by("model__team__slug", "model__name", "-number")


def twins_of(version: ModelVersion) -> list[int]:
    """Numbers of other versions of the model with the same bytes."""
    if not version.sha256:
        return []
    rows = ModelVersion.objects.filter(model_id=version.model_id, sha256=version.sha256)
    rows = rows.exclude(pk=version.pk).exclude(state=VersionState.FAILED)
    return list(rows.order_by("number").values_list("number", flat=True))


def live_deployments() -> QuerySet[Deployment]:
    return Deployment.objects.filter(is_retired=False).select_related(
        "team", "cluster", "stable_revision__version", "candidate_revision__version"
    )


def deployments_serving(version_ids: Collection[int]) -> dict[int, list[Deployment]]:
    """By version id: live deployments whose stable or candidate revision serves it."""
    rows = live_deployments().filter(
        Q(stable_revision__version_id__in=version_ids)
        | Q(candidate_revision__version_id__in=version_ids)
    )
    found: dict[int, list[Deployment]] = {}
    for deployment in rows:
        revisions = (deployment.stable_revision, deployment.candidate_revision)
        for version_id in {r.version_id for r in revisions if r is not None}:
            found.setdefault(version_id, []).append(deployment)
    return found


def _visible(actor: Actor) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.select_related("model__team", "created_by").filter(
        model__team__in=policy.visible_teams(actor)
    )
