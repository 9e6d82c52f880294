"""Models and versions that the actor may see, with the rows that pages and the API show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from django.db.models import Prefetch, Q, QuerySet, prefetch_related_objects

from deployments.models import Alias, Deployment, Model, ModelVersion, Revision
from deployments.spec.domain import model_names
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound

# Not loaded for lists.
LARGE: Final = ("signature", "config_pbtxt", "readme", "scan")


def get_model(*, actor: Actor, team_slug: str, name: str) -> Model:
    model = None
    # PostgreSQL rejects a comparison with text that it cannot store.
    if not model_names.model_name_problem(name):
        rows = Model.objects.filter(team__in=policy.visible_teams(actor))
        named = rows.filter(team__slug=team_slug, name=name)
        model = named.select_related("team", "created_by").first()
    if model is None:
        raise NotFound(f"Model {team_slug}/{name} does not exist, or you are not in its team.")
    return model


def get_model_with_aliases(*, actor: Actor, team_slug: str, name: str) -> Model:
    model = get_model(actor=actor, team_slug=team_slug, name=name)
    prefetch_related_objects([model], Prefetch("aliases", Alias.objects.select_related("version")))
    return model


def get_alias(*, actor: Actor, team_slug: str, model_name: str, alias: str) -> Alias:
    model = get_model(actor=actor, team_slug=team_slug, name=model_name)
    rows = model.aliases.select_related("version").filter(name=alias)
    row = None if model_names.alias_problem(alias) else rows.first()
    if row is None:
        raise NotFound(f"{model} has no alias {alias}.")
    return row


def get_version(*, actor: Actor, version_id: int) -> ModelVersion:
    try:
        return _visible(actor).select_related("source_import").get(pk=version_id)
    except ModelVersion.DoesNotExist as error:
        raise NotFound(
            f"Version {version_id} does not exist, or you are not in its team."
        ) from error


def get_version_by_number(*, actor: Actor, team_slug: str, name: str, number: int) -> ModelVersion:
    missing = f"Version {team_slug}/{name}:{number} does not exist, or you are not in its team."
    if model_names.model_name_problem(name):
        raise NotFound(missing)
    rows = _visible(actor).select_related("source_import")
    try:
        return rows.get(model__team__slug=team_slug, model__name=name, number=number)
    except ModelVersion.DoesNotExist as error:
        raise NotFound(missing) from error


def list_alias_names(version: ModelVersion) -> list[str]:
    return list(version.aliases.values_list("name", flat=True))


def list_versions(
    *,
    actor: Actor,
    model: Model | None = None,
    state: str = "",
    sha256: str = "",
) -> QuerySet[ModelVersion]:
    """List versions, newest first, without columns that can be megabytes."""
    rows = _visible(actor).prefetch_related("aliases").defer(*LARGE)
    if model is not None:
        rows = rows.filter(model=model)
    if state:
        rows = rows.filter(state=state)
    if sha256:
        rows = rows.filter(sha256=sha256)
    return rows.order_by("-id")


def list_ready_versions(
    *, actor: Actor, team_slug: str | None = None, model_id: int | None = None
) -> QuerySet[ModelVersion]:
    """Return deployable versions, grouped by model, newest first."""
    rows = _visible(actor).filter(state=VersionState.READY).defer("config_pbtxt", "readme")
    if team_slug:
        rows = rows.filter(model__team__slug=team_slug)
    if model_id is not None:
        rows = rows.filter(model_id=model_id)
    return rows.order_by("model__team__slug", "model__name", "-number")


def twins_of(version: ModelVersion) -> list[int]:
    """Return numbers of other versions of the model with the same bytes."""
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
    """Return live deployments by version id, whose stable or candidate revision serves it, including
    multi-model serving.
    """
    teams = ModelVersion.objects.filter(pk__in=version_ids).values("model__team")
    serves_several = Q(stable_revision__spec__additional_models__0__isnull=False) | Q(
        candidate_revision__spec__additional_models__0__isnull=False
    )
    rows = list(
        live_deployments().filter(
            Q(stable_revision__version_id__in=version_ids)
            | Q(candidate_revision__version_id__in=version_ids)
            | (Q(team__in=teams) & serves_several)
        )
    )
    by_deployment = [(deployment, _served_revisions(deployment)) for deployment in rows]
    ids = _version_ids_by_name(version_ids, by_deployment)
    by_version: dict[int, list[Deployment]] = {}
    for deployment, revisions in by_deployment:
        version_ids_served = {revision.version_id for revision in revisions}
        labels = {label for revision in revisions for label in _additional_models(revision)}
        version_ids_served |= {
            ids[key] for label in labels if (key := (deployment.team_id, *label)) in ids
        }
        for version_id in version_ids_served.intersection(version_ids):
            by_version.setdefault(version_id, []).append(deployment)
    return by_version


def _served_revisions(deployment: Deployment) -> list[Revision]:
    both = (deployment.stable_revision, deployment.candidate_revision)
    return [revision for revision in both if revision is not None]


def _additional_models(revision: Revision) -> list[tuple[str, int]]:
    return [
        (added["model"], added["version"]) for added in revision.spec.get("additional_models", ())
    ]


def _version_ids_by_name(
    version_ids: Collection[int], served: Sequence[tuple[Deployment, Sequence[Revision]]]
) -> dict[tuple[int, str, int], int]:
    """Return version ids by team, model and number. Empty, without a query, if nothing serves several models."""
    if not any(_additional_models(revision) for _, revisions in served for revision in revisions):
        return {}
    rows = ModelVersion.objects.filter(pk__in=version_ids)
    named = rows.values_list("model__team_id", "model__name", "number", "pk")
    return {(team_id, name, number): pk for team_id, name, number, pk in named}


def is_used_by_a_revision(version: ModelVersion) -> bool:
    """Whether any revision names the version: even an old one may be started again."""
    if version.revisions.exists():
        return True
    of_team = Revision.objects.filter(deployment__team=version.model.team_id)
    key = (version.model.name, version.number)
    return any(key in _additional_models(revision) for revision in of_team.iterator())


def _visible(actor: Actor) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.select_related("model__team", "created_by").filter(
        model__team__in=policy.visible_teams(actor), discarded_at=None
    )
