"""The deployments of a model, in columns by environment, and the rollouts that moved its versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from deployments.changes.selectors import changes
from deployments.environments.domain import environment_rules
from deployments.environments.domain.promotion_offer import PromotionOffer, offer_promotion
from deployments.models import ChangeRequest, Deployment, Model, Revision, Rollout
from deployments.pages.selectors import deployment_list, deployment_rows
from deployments.pages.selectors.deployment_rows import DeploymentRow
from deployments.spec.domain.model_settings import MAX_ADDITIONAL_MODELS
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock

# A model that serves in more places has its list of deployments.
_MOST: Final = 48
# Not shown, and large.
_READINGS: Final = ("evidence", "tests", "reference", "observed", "golden", "alias_moves")


@dataclass(frozen=True, slots=True)
class BoardCard:
    """A deployment on the board. `version` is the stable version of the model, None without any; `candidate` is that
    of an open rollout. `promotion` is None in the last environment, and for readers who may not request it.
    """

    row: DeploymentRow
    cluster_name: str
    created_by: str
    version: int | None
    candidate: int | None
    promotion: PromotionOffer | None


@dataclass(frozen=True, slots=True)
class BoardColumn:
    environment: str
    cards: Sequence[BoardCard]


def build_board(*, actor: User, model: Model) -> list[BoardColumn]:
    """Build the board in a fixed number of queries, the first environment first. Empty if the model serves nowhere."""
    visible = deployment_list.visible_rows(actor=actor, team_slug=model.team.slug)
    page = list(visible.filter(_serves(model)).order_by("name", "pk")[:_MOST])
    if not page:
        return []
    keys = [deployment.pk for deployment in page]
    placed = _read_places(keys)
    busy = set(
        ChangeRequest.objects.filter(
            deployment__in=keys, state__in=changes.OPEN_STATES
        ).values_list("deployment_id", flat=True)
    )
    versions = {
        pk: (
            _find_version(place.stable_revision, model),
            _find_version(place.candidate_revision, model),
        )
        for pk, place in placed.items()
    }
    can_request = policy.is_allowed(actor, Action.REQUEST_CHANGE, model)
    rows = dict(zip(keys, deployment_rows.build_rows(page), strict=True))
    columns = []
    for environment in environment_rules.ORDER:
        following = environment_rules.next_of(environment)
        serves_next = {versions[pk][0] for pk in keys if placed[pk].environment == following}
        cards = [
            BoardCard(
                row=rows[pk],
                cluster_name=placed[pk].cluster.name,
                created_by=placed[pk].created_by.display_name,
                version=versions[pk][0],
                candidate=versions[pk][1],
                promotion=offer_promotion(
                    environment=environment,
                    version=versions[pk][0],
                    is_stopped=placed[pk].is_stopped,
                    is_busy=pk in busy,
                    serves_next=serves_next,
                )
                if can_request
                else None,
            )
            for pk in keys
            if placed[pk].environment == environment
        ]
        columns.append(BoardColumn(environment.value, cards))
    return columns


def list_rollouts(model: Model) -> QuerySet[Rollout]:
    """Return the rollouts to versions of the model, the newest first, each with its `duration` until it ended or now."""
    until = Coalesce(F("finished_at"), Value(clock.now()))
    rows = Rollout.objects.filter(candidate_revision__version__model=model).annotate(
        duration=ExpressionWrapper(until - F("created_at"), output_field=DurationField())
    )
    related = rows.select_related(
        *("deployment__team", "requested_by"),
        *(f"{role}_revision__version__model" for role in ("stable", "candidate")),
    )
    return related.defer(*_READINGS).order_by("-id")


def _read_places(keys: Sequence[int]) -> dict[int, Deployment]:
    rows = Deployment.objects.select_related(
        *("cluster", "created_by"),
        *(f"{role}_revision__version" for role in ("stable", "candidate")),
    ).only(
        *("environment", "is_stopped", "cluster__name"),
        *(f"created_by__{name}" for name in ("username", "first_name", "last_name")),
        *(
            f"{role}_revision__{name}"
            for role in ("stable", "candidate")
            for name in ("spec", "version__number", "version__model")
        ),
    )
    return rows.in_bulk(keys)


def _serves(model: Model) -> Q:
    """Return the condition that a deployment serves a version of the model, also beside another model's."""
    serves = Q(pk__in=[])
    for role in ("stable_revision", "candidate_revision"):
        serves |= Q(**{f"{role}__version__model": model})
        for place in range(MAX_ADDITIONAL_MODELS):
            serves |= Q(**{f"{role}__spec__additional_models__{place}__model": model.name})
    return serves


def _find_version(revision: Revision | None, model: Model) -> int | None:
    if revision is None:
        return None
    if revision.version.model_id == model.pk:
        return revision.version.number
    added = revision.spec.get("additional_models", ())
    return next((one["version"] for one in added if one["model"] == model.name), None)
