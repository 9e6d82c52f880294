"""Register versions by reference: external weights with their metadata.

No bytes are read, so nothing is verified: the version is ready at once, and its checks say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import BigIntegerField, CharField, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL

from deployments.models import Model, ModelVersion
from deployments.registry.domain import external_weights
from deployments.registry.domain.external_weights import ExternalWeights
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.domain.verification_steps import VerificationStep
from deployments.registry.services import metadata as metadata_service
from deployments.registry.services import models as model_service
from deployments.registry.services import search_index
from deployments.spec.domain import model_names
from deployments.states import VersionState
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.accounts.visible_queries import VisibleQuery
from portal.audit import trail
from portal.audit.actions import register as register_action
from portal.audit.trail import EventFields
from portal.core import clock
from portal.core.compiled_queries import CompiledQuery, Parameter
from portal.core.definitions import Rejected
from portal.core.errors import Conflict, Invalid
from portal.core.kept_plans import kept_plans
from portal.core.statements import one_statement
from portal.core.statements.one_statement import NextId, Part

REGISTERED = register_action("version.registered", "registered by reference")
_ATTEMPTS: Final = 5
# The model with what a new version of it depends on.
_MODEL: Final = VisibleQuery(
    lambda teams: (
        Model.objects.select_related("team")
        .filter(
            team__in=teams,
            team__slug=Parameter("slug", CharField()),
            name=Parameter("name", CharField()),
        )
        .annotate(
            last_number=Subquery(_versions().order_by("-number").values("number")[:1]),
            same_id=Subquery(_with_reference().values("pk")[:1]),
            next_id=NextId(ModelVersion),
        )
        .order_by()
    )
)
_SAME_REFERENCE: Final = CompiledQuery(
    lambda: ModelVersion.objects.filter(
        model__team=Parameter("team", BigIntegerField()),
        model__name=Parameter("name", CharField()),
        source_uri=Parameter("uri", CharField()),
    ).order_by()
)


def _versions() -> QuerySet[ModelVersion]:
    return ModelVersion.objects.filter(model=OuterRef("pk"))


def _with_reference() -> QuerySet[ModelVersion]:
    # In words that the index has too, whatever the value: a plan that is kept does not know it.
    is_reference = ~Q(source_uri=RawSQL("''", ()))
    return _versions().filter(is_reference, source_uri=Parameter("uri", CharField())).order_by()


_UNVERIFIED: Final = (
    "Slipway has not verified these weights: there is no SHA-256, no VersionId and no scan, "
    "and the metadata is unverified."
)


@dataclass(frozen=True, slots=True)
class ReferenceDraft:
    """`source_uri` as in deployments/registry/domain/external_weights.py."""

    source_uri: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    readme: str = ""


@dataclass(frozen=True, slots=True)
class _Draft:
    """What was checked of a ReferenceDraft."""

    reference: ExternalWeights
    metadata: dict[str, Any]
    readme: str


def register(
    *, actor: User, team_slug: str, model_name: str, draft: ReferenceDraft
) -> ModelVersion:
    """Create a ready version; create the model with its first version.

    Raises Invalid for the name, the reference or the metadata, Conflict `same_reference` if a version
    of the model has the same reference.
    """
    checked, problems = _check(model_name, draft)
    for _ in range(_ATTEMPTS):
        try:
            if checked and (version := _add_to_model(actor, team_slug, model_name, checked)):
                return version
            team = teams.get_visible(actor=actor, slug=team_slug)
            policy.require(actor, Action.UPLOAD, team)
            if checked is None:
                raise Invalid(" ".join(problems.values()), fields=problems)
            return _add(actor, team, model_name, checked)
        except IntegrityError:
            # A concurrent request took the number, the name or the reference.
            continue
    raise Conflict("Another version of this model is being created. Try again.", code="busy")


def _check(model_name: str, draft: ReferenceDraft) -> tuple[_Draft | None, dict[str, str]]:
    """None with all problems at once, so that a form shows each at its field."""
    problems = {}
    if problem := model_names.model_name_problem(model_name):
        problems["model"] = problem
    reference = None
    try:
        reference = external_weights.parse(draft.source_uri)
    except Rejected as error:
        problems |= error.fields
    metadata, metadata_problems = version_metadata.clean(draft.metadata, is_reference=True)
    problems |= metadata_problems | metadata_service.readme_problems(draft.readme)
    if problems or reference is None:
        return None, problems
    return _Draft(reference, metadata, draft.readme), {}


def _add_to_model(
    actor: User, team_slug: str, model_name: str, draft: _Draft
) -> ModelVersion | None:
    """One statement reads all that decides, one writes all of `_insert`. None without such a model, and on SQLite."""
    if not one_statement.is_supported():
        return None
    model = _MODEL.first(actor, slug=team_slug, name=model_name, uri=draft.reference.uri)
    if model is None:
        return None
    known = vars(model)
    policy.require(actor, Action.UPLOAD, model)
    if known["same_id"] is not None:
        raise _duplicate(ModelVersion.objects.get(pk=known["same_id"]), model.name, draft)
    at = clock.now()
    version = _version(actor, model, (known["last_number"] or 0) + 1, draft, at)
    version.pk = known["next_id"]
    one_statement.run(
        [
            one_statement.insert_of(version),
            *search_index.parts_of(version),
            Part("UPDATE deployments_model SET changed_at = %s WHERE id = %s", (at, model.pk)),
            one_statement.insert_of(trail.event(**_event(actor, version, draft))),
        ]
    )
    version._state.adding = False
    version.joined_aliases = ""
    return version


def _add(actor: User, team: Team, model_name: str, draft: _Draft) -> ModelVersion:
    duplicate = _SAME_REFERENCE.first(team=team.pk, name=model_name, uri=draft.reference.uri)
    if duplicate is not None:
        raise _duplicate(duplicate, model_name, draft)
    with kept_plans(), transaction.atomic():
        model = model_service.get_or_create(actor=actor, team=team, name=model_name)
        return _insert(actor, model, draft)


def _duplicate(version: ModelVersion, model_name: str, draft: _Draft) -> Conflict:
    fix = draft.reference.advice or "Use that one."
    return Conflict(
        f"This reference is already version {version.number} of {model_name} ({version.state}). {fix}",
        code="same_reference",
        fields={external_weights.FIELD: f"is version {version.number} already"},
    )


def _insert(actor: User, model: Model, draft: _Draft) -> ModelVersion:
    at = clock.now()
    version = _version(actor, model, model_service.next_number(model), draft, at)
    version.save(force_insert=True)
    search_index.create(version)
    Model.objects.filter(pk=model.pk).update(changed_at=at)
    trail.record(**_event(actor, version, draft))
    return version


def _version(actor: User, model: Model, number: int, draft: _Draft, at: datetime) -> ModelVersion:
    return ModelVersion(
        model=model,
        number=number,
        state=VersionState.READY,
        source_uri=draft.reference.uri,
        declared_size_bytes=0,
        metadata=draft.metadata,
        readme=draft.readme,
        checks=_checks(draft.reference),
        created_by=actor,
        created_at=at,
        ready_at=at,
    )


def _event(actor: User, version: ModelVersion, draft: _Draft) -> EventFields:
    reference = draft.reference
    return {
        "actor": actor,
        "action": REGISTERED,
        "obj": version,
        "label": version.label,
        "team_slug": version.team.slug,
        "after": {
            "source_uri": reference.uri,
            "pin": reference.pin,
            "metadata": draft.metadata,
        },
    }


def _checks(reference: ExternalWeights) -> list[dict[str, Any]]:
    pinned = f"to {reference.pin}" if reference.is_pinned else reference.advice
    engines = ", ".join(reference.engines)
    steps = (
        VerificationStep("Reference", ok=True, detail=f"well formed; {engines} can load it"),
        VerificationStep("Pinned", ok=reference.is_pinned, detail=pinned),
        VerificationStep("Bytes", detail=_UNVERIFIED),
    )
    return [step.to_json() for step in steps]
