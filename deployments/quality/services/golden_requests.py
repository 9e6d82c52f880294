"""Saving and retiring golden requests. A saved one never changes: an edit is the next number."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from deployments import rejections
from deployments.models import GoldenRequest, Model, ModelVersion
from deployments.quality.domain import golden_requests
from deployments.quality.selectors import quality
from deployments.registry.domain import signatures
from deployments.registry.domain.signatures import Signature
from deployments.registry.selectors import versions
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

SAVED = register("golden_request.saved", "saved a golden request of")
RETIRED = register("golden_request.retired", "deleted a golden request of")


def save(
    *,
    actor: User,
    team_slug: str,
    model_name: str,
    name: str,
    request: object,
    expected: object,
    tolerances: object = None,
    version_id: int | None = None,
) -> GoldenRequest:
    """Save a golden request. An existing name gets its next number. `version_id` is the version that gave the
    answer.
    """
    model = versions.get_model(actor=actor, team_slug=team_slug, name=model_name)
    policy.require(actor, Action.UPLOAD, model)
    version = _version_of(actor, model, version_id)
    fields = _checked(name, request, expected, tolerances, _signature_of(model, version))
    try:
        with transaction.atomic():
            return _insert(actor, model, version, fields)
    except IntegrityError as error:
        raise Conflict(
            f"Someone else saved {fields['name']} a moment ago. Reload and save again.",
            code="golden_request_taken",
        ) from error


def retire(*, actor: User, golden_id: int) -> GoldenRequest:
    """Delete a golden request. Later candidates do not get it; runs that have begun keep it."""
    row = quality.get_golden_request(actor=actor, golden_id=golden_id)
    policy.require(actor, Action.UPLOAD, row)
    with transaction.atomic():
        rows = GoldenRequest.objects.filter(pk=row.pk, retired_at=None)
        if rows.update(retired_at=clock.now()) == 0:
            raise NotFound(f"{row.name} is no longer a golden request of {row.model}.")
        _record(actor, row, RETIRED, before={"name": row.name, "number": row.number}, after={})
    return row


def _checked(
    name: str, request: object, expected: object, tolerances: object, signature: Signature
) -> dict[str, Any]:
    with rejections.as_invalid():
        answer = golden_requests.check_expected(expected, signature)
        return {
            "name": golden_requests.check_name(name),
            "request": golden_requests.check_request(request, signature),
            "expected": answer,
            "tolerances": golden_requests.check_tolerances(tolerances or {}, answer),
        }


def _insert(
    actor: User, model: Model, version: ModelVersion | None, fields: dict[str, Any]
) -> GoldenRequest:
    at = clock.now()
    live = GoldenRequest.objects.filter(model=model, retired_at=None)
    live.filter(name=fields["name"]).update(retired_at=at)
    if live.count() >= golden_requests.MOST_PER_MODEL:
        raise Invalid(
            f"{model} has {golden_requests.MOST_PER_MODEL} golden requests, the limit. Delete "
            "one first.",
            fields={"name": "delete another one first"},
        )
    same = GoldenRequest.objects.filter(model=model, name=fields["name"])
    last = same.order_by("-number").values_list("number", flat=True).first() or 0
    row = GoldenRequest.objects.create(
        model=model,
        number=last + 1,
        version=version,
        created_by=actor,
        created_at=at,
        **fields,
    )
    before = {"name": row.name, "number": last} if last else {}
    after = {"name": row.name, "number": row.number, "tolerances": row.tolerances}
    _record(actor, row, SAVED, before=before, after=after)
    return row


def _record(
    actor: User, row: GoldenRequest, action: Any, *, before: dict[str, Any], after: dict[str, Any]
) -> None:
    trail.record(
        actor=actor,
        action=action,
        obj=row,
        label=f"{row.model} ({row.name})",
        team_slug=row.team.slug,
        before=before,
        after=after,
    )


def _version_of(actor: User, model: Model, version_id: int | None) -> ModelVersion | None:
    if version_id is None:
        return None
    version = versions.get_version(actor=actor, version_id=version_id)
    if version.model_id != model.pk:
        raise Invalid(
            f"{version} is not a version of {model}.", fields={"version_id": "of another model"}
        )
    return version


def _signature_of(model: Model, version: ModelVersion | None) -> Signature:
    """Return the signature of the version that gave the answer, else of the newest that may be deployed."""
    if version is None:
        return quality.signature_of(model)
    return signatures.from_json(version.signature)
