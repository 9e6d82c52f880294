"""Whether a trusted identity made a keyless signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cryptography import x509

from deployments.attestations.domain import fulcio
from deployments.attestations.domain.bundles import AttestationInvalid, Bundle
from deployments.attestations.domain.fulcio import Identity
from deployments.attestations.domain.log_entries import NotProved
from deployments.attestations.domain.signers import (
    UNREADABLE,
    SignatureVerdict,
    Signer,
    SignerKind,
)
from deployments.attestations.gateways import sigstore_verifier
from deployments.attestations.gateways.sigstore_verifier import Proof
from deployments.attestations.selectors.trust_roots import VerifyingRoot

_MOST_REASONS: Final = 3


def claimed_identity(bundle: Bundle) -> Identity | None:
    """Return the identity that the certificate names, not verified. None if it is not one of Fulcio. Raises
    AttestationInvalid.
    """
    if not bundle.certificates:
        return None
    try:
        return fulcio.identity_of(x509.load_der_x509_certificate(bundle.certificates[0]))
    except AttestationInvalid:
        raise
    except UNREADABLE as error:
        raise AttestationInvalid("A certificate of the bundle cannot be read.") from error


def verify(
    document: Mapping[str, Any],
    bundle: Bundle,
    claimed: Identity,
    signers: Iterable[Signer],
    roots: Sequence[VerifyingRoot],
) -> SignatureVerdict:
    """Find the trusted identity that made a keyless signature. `roots` are those under which the identities among
    the signers are trusted. Raises AttestationInvalid.
    """
    identities = [one for one in signers if one.kind == SignerKind.KEYLESS]
    if not identities:
        reason = "It is keyless, and no identity is trusted for keyless signatures."
        return SignatureVerdict(None, claimed.subject, reason, issuer=claimed.issuer)
    proved: SignatureVerdict | None = None
    reasons = []
    for root in roots:
        try:
            proof = sigstore_verifier.verify(document, bundle.content, root.document)
        except NotProved as error:
            reasons.append(f"{root.name}: {error}" if len(roots) > 1 else str(error))
            continue
        verdict = _match(proof, root, identities)
        if verdict.signer is not None:
            return verdict
        proved = proved or verdict
    if proved is not None:
        return proved
    reason = " ".join(reasons[:_MOST_REASONS])
    return SignatureVerdict(None, claimed.subject, reason, issuer=claimed.issuer)


def _match(proof: Proof, root: VerifyingRoot, identities: Iterable[Signer]) -> SignatureVerdict:
    """Match the verified identity with the trusted ones exactly: nothing that only begins like a trusted subject
    matches.
    """
    named = proof.identity
    signer = next(
        (
            one
            for one in identities
            if (one.root_id, one.issuer, one.identity) == (root.id, named.issuer, named.subject)
        ),
        None,
    )
    reason = (
        ""
        if signer
        else f"Its signature is proved, but its identity is not trusted under {root.name}."
    )
    return SignatureVerdict(
        signer,
        named.subject,
        reason,
        issuer=named.issuer,
        signed_at=proof.signed_at,
        log_index=proof.log_index,
    )
