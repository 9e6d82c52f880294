"""Serializers of attestations, trusted signers and signing rules."""

from __future__ import annotations

from rest_framework import serializers

from deployments.attestations.domain.signers import LONGEST_PEM, SignerKind
from deployments.attestations.domain.verdicts import AttestationState
from deployments.attestations.services import attestations
from deployments.states import Environment
from portal.api.base_serializer import Serializer, choice_of


class ProvenanceSerializer(Serializer):
    """Empty where the statement does not say it."""

    builder = serializers.CharField(default="")
    build_type = serializers.CharField(default="")
    source_uri = serializers.CharField(source="source", default="")
    commit = serializers.CharField(default="")


class AttestationSerializer(Serializer):
    id = serializers.IntegerField(source="pk")
    filename = serializers.CharField()
    sha256 = serializers.CharField()
    state = choice_of(
        AttestationState,
        help_text="trusted: a trusted signer signed exactly the bytes of the version; untrusted: "
        "nobody who is trusted signed it; invalid: unreadable, or about other bytes",
    )
    reason = serializers.CharField()
    is_provenance = serializers.BooleanField(help_text="false: a signature, or not read")
    signer = serializers.CharField(source="signer.name", default=None, allow_null=True)
    identity = serializers.CharField(help_text="of the signing certificate; empty for a key")
    provenance = ProvenanceSerializer(source="facts")
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    checked_at = serializers.DateTimeField(allow_null=True)


class AttestationFileSerializer(AttestationSerializer):
    body = serializers.CharField(help_text="the bundle or envelope as it was added")


class AttestationDraftSerializer(Serializer):
    filename = serializers.CharField(max_length=200, default="model.sig")
    body = serializers.CharField(
        max_length=attestations.MOST_BYTES,
        trim_whitespace=False,
        help_text="text of a Sigstore bundle (model_signing, cosign --bundle) or a DSSE envelope",
    )


class TrustedSignerSerializer(Serializer):
    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=80)
    team = serializers.CharField(default="", allow_blank=True, help_text="empty: all teams")
    kind = choice_of(SignerKind, default=SignerKind.KEY.value)
    pem = serializers.CharField(
        max_length=LONGEST_PEM, help_text="the public key, or the root certificates"
    )
    identity = serializers.CharField(
        max_length=300,
        default="",
        allow_blank=True,
        help_text="e-mail address or URI of the signing certificate; empty for a key",
    )


class SigningRuleSerializer(Serializer):
    """Left out or empty means any."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=80)
    team = serializers.CharField(default="", allow_blank=True, help_text="empty: all teams")
    environments = serializers.ListField(child=choice_of(Environment), default=list)
    signers = serializers.ListField(
        child=serializers.CharField(max_length=80), default=list, help_text="names"
    )
    needs_provenance = serializers.BooleanField(default=False)
    builders = serializers.ListField(
        child=serializers.CharField(max_length=300),
        default=list,
        help_text='patterns of builders that the provenance may name: "https://github.com/acme/*"',
    )
