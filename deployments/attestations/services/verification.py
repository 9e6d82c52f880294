"""Verify attestations against the bytes of their version and the trusted signers."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from deployments import audit_actions
from deployments.attestations.domain import bundles, signers, statements
from deployments.attestations.domain.bundles import (
    AttestationInvalid,
    Bundle,
    Envelope,
    MessageSignature,
)
from deployments.attestations.domain.signers import SignatureVerdict
from deployments.attestations.domain.statements import Provenance, Statement, VerifiedFiles
from deployments.attestations.domain.verdicts import AttestationState
from deployments.attestations.selectors import attestations, trust_roots
from deployments.attestations.services import keyless
from deployments.models import Attestation, ModelVersion
from deployments.states import VersionState
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock, documents, leases
from portal.core.documents import UnreadableDocument
from portal.core.leases import Lease

logger = logging.getLogger(__name__)
TASK: Final = "deployments.verify_attestation"
_IN_PROGRESS: Final = (VersionState.UPLOADING, VersionState.VERIFYING)
_WAIT: Final = timedelta(seconds=5)
_BATCH: Final = 200
# Of what a certificate names.
_LONGEST_NAME: Final = 300


@dataclass(frozen=True, slots=True)
class _Finding:
    state: AttestationState
    reason: str = ""
    is_provenance: bool = False
    signer_id: int | None = None
    identity: str = ""
    issuer: str = ""
    signed_at: datetime | None = None
    log_index: int | None = None
    facts: dict[str, str] = field(default_factory=dict)


def sweep() -> None:
    for attestation_id in leases.due(Attestation, limit=_BATCH):
        advance(attestation_id)


def advance(attestation_id: int) -> None:
    """Verify the attestation, or wait until the version's own digests are known. The end of the version's upload or
    verification bounds that wait.
    """
    lease = leases.claim(Attestation, attestation_id)
    if lease is None:
        return
    row = Attestation.objects.select_related("version__model__team").get(pk=attestation_id)
    if row.version.state in _IN_PROGRESS:
        leases.release(Attestation, lease, next_check_at=clock.now() + _WAIT)
        return
    _record(row, lease, _examine(row))


def _examine(row: Attestation) -> _Finding:
    try:
        return _verify(row)
    except AttestationInvalid as error:
        return _Finding(AttestationState.INVALID, str(error))
    except UnreadableDocument as error:
        return _Finding(AttestationState.INVALID, error.message)


def _verify(row: Attestation) -> _Finding:
    """Verify the signature first: nothing that a stranger signed is read any further."""
    document = documents.read_json(row.body)
    bundle = bundles.parse(document)
    verdict = _signature(row, document, bundle)
    if verdict.signer is None:
        return _Finding(AttestationState.UNTRUSTED, verdict.reason, **_witnessed(verdict))
    statement = _statement(bundle.content)
    problem = statements.problem_with(statement, _artifact_of(row.version), own_sha256=row.sha256)
    is_provenance = isinstance(statement, Provenance)
    return _Finding(
        AttestationState.INVALID if problem else AttestationState.TRUSTED,
        problem,
        is_provenance=is_provenance,
        signer_id=verdict.signer.id,
        **_witnessed(verdict),
        facts=_facts_of(statement) if isinstance(statement, Provenance) else {},
    )


def _signature(row: Attestation, document: Any, bundle: Bundle) -> SignatureVerdict:
    """Verify the signature with the trusted keys and authorities, and a keyless one also with its log."""
    trusted = attestations.signers_for(row.version.model.team)
    verdict = signers.verify(bundle, trusted, at=row.created_at)
    if verdict.signer is not None:
        return verdict
    claimed = keyless.claimed_identity(bundle)
    if claimed is None:
        return verdict
    return keyless.verify(document, bundle, claimed, trusted, trust_roots.roots_of(trusted))


def _witnessed(verdict: SignatureVerdict) -> dict[str, Any]:
    return {
        "identity": verdict.identity[:_LONGEST_NAME],
        "issuer": verdict.issuer[:_LONGEST_NAME],
        "signed_at": verdict.signed_at,
        "log_index": verdict.log_index,
    }


def _statement(content: Envelope | MessageSignature) -> Statement | MessageSignature:
    if isinstance(content, MessageSignature):
        return content
    if content.payload_type != statements.PAYLOAD_TYPE:
        raise AttestationInvalid(f"The payload type must be {statements.PAYLOAD_TYPE}.")
    return statements.parse(documents.read_json(content.payload))


def _artifact_of(version: ModelVersion) -> VerifiedFiles:
    files = dict(version.files.values_list("path", "sha256"))
    if version.source_uri or not files or not all(files.values()):
        raise AttestationInvalid(f"The bytes of {version.label} were never verified.")
    return VerifiedFiles(files, version.archive_sha256)


def _facts_of(provenance: Provenance) -> dict[str, str]:
    facts: dict[str, Any] = asdict(provenance)
    return {name: text for name, text in facts.items() if name != "sha256" and text}


def _record(row: Attestation, lease: Lease, found: _Finding) -> None:
    """Store the verdict and its audit event in one transaction. Do nothing if another worker took over."""
    at = clock.now()
    is_news = (row.state, row.signer_id, row.reason) != (found.state, found.signer_id, found.reason)
    with transaction.atomic():
        held = Attestation.objects.filter(pk=row.pk, lease_token=lease.token, lease_until__gt=at)
        if not held.update(**asdict(found), checked_at=at):
            return
        if is_news:
            trail.record(
                actor=SYSTEM,
                action=audit_actions.ATTESTATION_VERIFIED,
                obj=row,
                label=str(row),
                team_slug=row.version.team_slug,
                before={"state": row.state},
                after={"state": found.state, "reason": found.reason, "signer": found.signer_id},
            )
            logger.info("attestation %s is %s: %s", row.pk, found.state, found.reason)
        leases.release(Attestation, lease, next_check_at=None)
