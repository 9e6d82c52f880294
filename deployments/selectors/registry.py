"""Reading models and versions: what the actor may see, with what pages and the API join to it."""

from __future__ import annotations

from django.db.models import QuerySet

from deployments.domain.states import VersionState
from deployments.models import Model, ModelVersion
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound


def get_model(*, actor: Actor, team_slug: str, name: str) -> Model:
    model = (
        Model.objects.select_related("team", "created_by")
        .filter(team__in=policy.visible_teams(actor), team__slug=team_slug, name=name)
        .first()
    )
    if model is None:
        raise NotFound(f"There is no model {team_slug}/{name}, or you are not in its team.")
    return model


def get_version(*, actor: Actor, version_id: int) -> ModelVersion:
    version = _visible(actor).filter(pk=version_id).first()
    if version is None:
        raise NotFound(f"There is no version {version_id}, or you are not in its team.")
    return version


def get_version_by_number(*, actor: Actor, team_slug: str, name: str, number: int) -> ModelVersion:
    rows = _visible(actor).filter(model__team__slug=team_slug, model__name=name, number=number)
    version = rows.first()
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


def _visible(actor: Actor) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.select_related("model__team", "created_by").filter(
        model__team__in=policy.visible_teams(actor)
    )
