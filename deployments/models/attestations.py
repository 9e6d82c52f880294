"""Signatures and provenance of versions, whom to trust, and what rules require."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.registry import ModelVersion
from portal.accounts.models import Team
from portal.core.leases import Leased

_KINDS = ("key", "certificate", "keyless")
_STATES = ("pending", "trusted", "untrusted", "invalid")


class TrustRoot(models.Model):
    """A Sigstore trust root (`trusted_root.json`). It is replaced when its authorities or logs rotate."""

    name = models.CharField(max_length=80)
    document = models.TextField()
    # Of the document as it was added.
    sha256 = models.CharField(max_length=64)
    # deployments.attestations.domain.trust_roots.Instance, for pages.
    contents = models.JSONField(default=list)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()
    replaced_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(removed_at=None), name="one_trust_root_per_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class TrustedSigner(models.Model):
    """A public key, an identity in certificates of an authority, or one of keyless signatures. Never changed:
    removed and added anew.

    Without a team it is trusted for versions of all teams.
    """

    name = models.CharField(max_length=80)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="+")
    # deployments.attestations.domain.signers.SignerKind
    kind = models.CharField(max_length=11, choices=[(kind, kind) for kind in _KINDS])
    # The public key, or the root certificates; empty for a keyless identity.
    pem = models.TextField(blank=True)
    # The e-mail address or URI of the signing certificate; empty for a key.
    identity = models.CharField(max_length=300, blank=True, default="")
    # The OIDC issuer of a keyless identity, and what vouches for it.
    issuer = models.CharField(max_length=300, blank=True, default="", db_default="")
    root = models.ForeignKey(
        TrustRoot, on_delete=models.PROTECT, null=True, related_name="identities"
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(removed_at=None), name="one_signer_per_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class SigningRule(models.Model):
    """A rule about signatures and provenance. Requests to serve a version are refused unless it has what this
    requires. Empty lists mean "any".
    """

    name = models.CharField(max_length=80, unique=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="+")
    environments = models.JSONField(default=list)
    signers = models.ManyToManyField(TrustedSigner, related_name="+")
    needs_provenance = models.BooleanField(default=False)
    # Patterns with * for the builder that the provenance names.
    builders = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Attestation(Leased):
    """A Sigstore bundle or DSSE envelope that someone added to a version.

    `state` is what a worker found; it is found anew when the trusted signers change. A decision also asks
    whether `signer` is still trusted.
    """

    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="attestations")
    filename = models.CharField(max_length=200)
    body = models.TextField()
    # Of the file as it was added.
    sha256 = models.CharField(max_length=64)
    # deployments.attestations.domain.verdicts.AttestationState
    state = models.CharField(max_length=9, choices=[(state, state) for state in _STATES])
    # Why it is not trusted.
    reason = models.TextField(blank=True, default="")
    is_provenance = models.BooleanField(default=False)
    signer = models.ForeignKey(
        TrustedSigner, on_delete=models.PROTECT, null=True, related_name="attestations"
    )
    # What the certificate of the signature names.
    identity = models.CharField(max_length=300, blank=True, default="")
    # Of a keyless signature: who knows that identity, when it was signed, and its entry in the log.
    issuer = models.CharField(max_length=300, blank=True, default="", db_default="")
    signed_at = models.DateTimeField(null=True)
    log_index = models.BigIntegerField(null=True)
    # deployments.attestations.domain.statements.Provenance without digests; empty for a signature.
    facts = models.JSONField(default=dict)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "sha256"], name="one_attestation_of_these_bytes"
            )
        ]

    def __str__(self) -> str:
        return f"{self.filename} of {self.version.label}"
