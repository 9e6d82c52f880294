"""Sigstore trust roots, and what depends on them and on signers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from deployments.attestations.domain.signers import Signer
from deployments.attestations.domain.verdicts import AttestationState
from deployments.models import Attestation, ModelVersion, TrustedSigner, TrustRoot
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.errors import NotFound


@dataclass(frozen=True, slots=True)
class VerifyingRoot:
    """A trust root to verify with. `document` is parsed JSON."""

    id: int
    name: str
    document: Mapping[str, Any]


def list_roots() -> QuerySet[TrustRoot]:
    """Return the trust roots with `identity_count`, without their documents. They contain only public keys, so
    anyone may read them.
    """
    live = Count("identities", filter=Q(identities__removed_at=None))
    rows = TrustRoot.objects.filter(removed_at=None).select_related("created_by")
    return rows.defer("document").annotate(identity_count=live).order_by("name")


def get_root(root_id: int) -> TrustRoot:
    row = TrustRoot.objects.filter(pk=root_id, removed_at=None).select_related("created_by").first()
    if row is None:
        raise NotFound(f"There is no trust root {root_id}.")
    return row


def get_signer(*, actor: Actor, signer_id: int) -> TrustedSigner:
    rows = TrustedSigner.objects.select_related("team", "root")
    visible = rows.filter(Q(team=None) | Q(team__in=policy.visible_teams(actor)))
    row = visible.filter(pk=signer_id, removed_at=None).first()
    if row is None:
        raise NotFound(f"There is no trusted signer {signer_id}.")
    return row


def identities_of(root: TrustRoot) -> list[TrustedSigner]:
    rows = TrustedSigner.objects.filter(root=root, removed_at=None).select_related("team", "root")
    return list(rows.order_by("name"))


def roots_of(signers: Iterable[Signer]) -> list[VerifyingRoot]:
    """Return the roots under which keyless identities among the signers are trusted."""
    ids = {one.root_id for one in signers if one.root_id is not None}
    rows = TrustRoot.objects.filter(pk__in=ids, removed_at=None).order_by("pk")
    return [VerifyingRoot(row.pk, row.name, json.loads(row.document)) for row in rows]


def versions_only_signed_by(signer_ids: Collection[int], *, actor: Actor) -> QuerySet[ModelVersion]:
    """Return versions that the actor may see and whose only trusted signatures are those of these signers."""
    signed = Attestation.objects.filter(
        version=OuterRef("pk"), state=AttestationState.TRUSTED, is_provenance=False
    )
    live = signed.filter(signer__removed_at=None)
    rows = ModelVersion.objects.filter(
        Exists(signed.filter(signer__in=signer_ids)),
        ~Exists(live.exclude(signer__in=signer_ids)),
        model__team__in=policy.visible_teams(actor),
        discarded_at=None,
    )
    return rows.select_related("model__team").order_by("model__team__slug", "model__name", "number")
