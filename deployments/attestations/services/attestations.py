"""Add signatures and provenance to a version, and remove them."""

from __future__ import annotations

import hashlib
from typing import Final

from django.db import IntegrityError, transaction

from deployments import audit_actions
from deployments.attestations.domain import bundles
from deployments.attestations.domain.bundles import AttestationInvalid
from deployments.attestations.domain.verdicts import AttestationState
from deployments.attestations.selectors import attestations
from deployments.attestations.services import verification
from deployments.models import Attestation, ModelVersion
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock, documents
from portal.core.documents import UnreadableDocument
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake

MOST_BYTES: Final = 2_000_000
_MOST: Final = 20
_LONGEST_NAME: Final = 200


def add(*, actor: User, version_id: int, filename: str, body: str) -> Attestation:
    """Add an attestation; a worker verifies it once the version's own digests are known.

    Raises Invalid if it is no bundle, Conflict if it was added before.
    """
    version = attestations.get_visible_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    _check(version, filename, body)
    at = clock.now()
    with transaction.atomic():
        ModelVersion.objects.select_for_update().filter(pk=version.pk).first()
        if Attestation.objects.filter(version=version).count() >= _MOST:
            raise Conflict(
                f"{version.label} has {_MOST} attestations. Remove one first.",
                code="too_many_attestations",
            )
        row = _create(
            Attestation(
                version=version,
                filename=filename.strip(),
                body=body,
                sha256=hashlib.sha256(body.encode()).hexdigest(),
                state=AttestationState.PENDING,
                created_by=actor,
                created_at=at,
                next_check_at=at,
            )
        )
        trail.record(
            actor=actor,
            action=audit_actions.ATTESTATION_ADDED,
            obj=row,
            label=str(row),
            team_slug=version.team_slug,
            after={"filename": row.filename, "sha256": row.sha256},
        )
        wake(verification.TASK, row.pk)
    return row


def remove(*, actor: User, version_id: int, attestation_id: int) -> None:
    """Remove an attestation. Revisions that serve stay; later requests are checked without it."""
    version = attestations.get_visible_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    row = attestations.get_of(version, attestation_id)
    with transaction.atomic():
        trail.record(
            actor=actor,
            action=audit_actions.ATTESTATION_REMOVED,
            obj=row,
            label=str(row),
            team_slug=version.team_slug,
            before={"filename": row.filename, "sha256": row.sha256, "state": row.state},
        )
        row.delete()


def _check(version: ModelVersion, filename: str, body: str) -> None:
    if version.source_uri:
        raise Conflict(
            f"{version.label} is a reference: the portal has no bytes to compare with a signature.",
            code="no_bytes",
        )
    if version.state == VersionState.FAILED:
        raise Conflict(f"{version.label} failed, so it cannot be signed.", code="failed")
    if not 1 <= len(filename.strip()) <= _LONGEST_NAME:
        raise Invalid(
            "Name the file, in 1 to 200 characters.", fields={"filename": "1 to 200 characters"}
        )
    problem = _problem_with(body)
    if problem:
        raise Invalid(problem, fields={"body": problem})


def _problem_with(body: str) -> str:
    if len(body.encode()) > MOST_BYTES:
        return f"An attestation has at most {MOST_BYTES:,} bytes."
    try:
        bundles.parse(documents.read_json(body))
    except AttestationInvalid as error:
        return str(error)
    except UnreadableDocument as error:
        return error.message
    return ""


def _create(row: Attestation) -> Attestation:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            f"{row.version.label} already has this attestation.", code="already_added"
        ) from error
    return row
