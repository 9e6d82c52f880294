"""Register versions by reference: external weights with their metadata.

No bytes are read, so nothing is verified: the version is ready at once, and its checks say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import IntegrityError, transaction

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
from portal.audit import trail
from portal.audit.actions import register as register_action
from portal.core import clock
from portal.core.definitions import Rejected
from portal.core.errors import Conflict, Invalid

REGISTERED = register_action("version.registered", "registered by reference")
_ATTEMPTS: Final = 5
_UNVERIFIED: Final = (
    "Slipway has not verified these weights: there is no SHA-256, no VersionId and no scan, "
    "and the metadata is unverified."
)


@dataclass(frozen=True, slots=True)
class ReferenceDraft:
    """A reference to store. `source_uri` as in deployments/registry/domain/external_weights.py."""

    source_uri: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    readme: str = ""


@dataclass(frozen=True, slots=True)
class _Draft:
    """The checked parts of a ReferenceDraft."""

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
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.UPLOAD, team)
    if checked is None:
        raise Invalid(" ".join(problems.values()), fields=problems)
    for _ in range(_ATTEMPTS):
        _refuse_duplicate(team, model_name, checked)
        try:
            with transaction.atomic():
                model = model_service.get_or_create(actor=actor, team=team, name=model_name)
                return _insert(actor, model, checked)
        except IntegrityError:
            # A concurrent request took the number, the name or the reference.
            continue
    raise Conflict("Another version of this model is being created. Try again.", code="busy")


def _check(model_name: str, draft: ReferenceDraft) -> tuple[_Draft | None, dict[str, str]]:
    """Check the draft. The second value has all problems at once, so that a form shows each at its field; with
    problems the first is None.
    """
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


def _refuse_duplicate(team: Team, model_name: str, draft: _Draft) -> None:
    uri = draft.reference.uri
    same = ModelVersion.objects.filter(model__team=team, model__name=model_name, source_uri=uri)
    version = same.first()
    if version is None:
        return
    fix = draft.reference.advice or "Use that one."
    raise Conflict(
        f"This reference is already version {version.number} of {model_name} ({version.state}). {fix}",
        code="same_reference",
        fields={external_weights.FIELD: f"is version {version.number} already"},
    )


def _insert(actor: User, model: Model, draft: _Draft) -> ModelVersion:
    at, reference = clock.now(), draft.reference
    version = ModelVersion.objects.create(
        model=model,
        number=model_service.next_number(model),
        state=VersionState.READY,
        source_uri=reference.uri,
        declared_size_bytes=0,
        metadata=draft.metadata,
        readme=draft.readme,
        checks=_checks(reference),
        created_by=actor,
        created_at=at,
        ready_at=at,
    )
    search_index.create(version)
    Model.objects.filter(pk=model.pk).update(changed_at=at)
    trail.record(
        actor=actor,
        action=REGISTERED,
        obj=version,
        label=version.label,
        team_slug=version.team.slug,
        after={
            "source_uri": reference.uri,
            "pin": reference.pin,
            "metadata": draft.metadata,
        },
    )
    return version


def _checks(reference: ExternalWeights) -> list[dict[str, Any]]:
    pinned = f"to {reference.pin}" if reference.is_pinned else reference.advice
    engines = ", ".join(reference.engines)
    steps = (
        VerificationStep("Reference", ok=True, detail=f"well formed; {engines} can load it"),
        VerificationStep("Pinned", ok=reference.is_pinned, detail=pinned),
        VerificationStep("Bytes", detail=_UNVERIFIED),
    )
    return [step.to_json() for step in steps]
