"""Serializers of attestations, trusted signers and signing rules."""

from __future__ import annotations

from rest_framework import serializers

from deployments.attestations.domain.signers import LONGEST_PEM, SignerKind
from deployments.attestations.domain.trust_roots import MOST_BYTES
from deployments.attestations.domain.verdicts import AttestationState
from deployments.attestations.services import attestations
from deployments.states import Environment
from portal.api.base_serializer import Serializer, choice_of

# Of those that a removal concerns.
MOST_VERSIONS = 100


class ProvenanceSerializer(Serializer):
    """The provenance of a version. A field is empty if the statement does not name it."""

    builder = serializers.CharField(default="")
    build_type = serializers.CharField(default="")
    source_uri = serializers.CharField(source="source", default="")
    commit = serializers.CharField(default="")


class AttestationSerializer(Serializer):
    """A signature or provenance of a version; `reason` says why it is not trusted."""

    id = serializers.IntegerField(source="pk")
    filename = serializers.CharField()
    sha256 = serializers.CharField()
    state = choice_of(
        AttestationState,
        help_text="trusted: a trusted signer signed exactly the bytes of the version; untrusted: "
        "no trusted signer signed it; invalid: unreadable, or about other bytes",
    )
    reason = serializers.CharField()
    is_provenance = serializers.BooleanField(help_text="false: a signature, or not read")
    signer = serializers.CharField(source="signer.name", default=None, allow_null=True)
    identity = serializers.CharField(
        help_text="Identity in the signing certificate. Empty for a key."
    )
    issuer = serializers.CharField(help_text="OIDC issuer of a keyless signature, else empty")
    signed_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of a keyless signature, as its log or timestamp proves it."
    )
    log_index = serializers.IntegerField(
        allow_null=True, help_text="Index of the entry in the transparency log."
    )
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
    team = serializers.CharField(default="", allow_blank=True, help_text="Empty means all teams.")
    kind = choice_of(SignerKind, default=SignerKind.KEY.value)
    pem = serializers.CharField(
        max_length=LONGEST_PEM,
        default="",
        allow_blank=True,
        help_text="the public key, or the root certificates; empty for a keyless identity",
    )
    identity = serializers.CharField(
        max_length=300,
        default="",
        allow_blank=True,
        help_text="e-mail address or URI of the signing certificate; empty for a key",
    )
    trust_root = serializers.CharField(
        max_length=80,
        default="",
        allow_blank=True,
        help_text="name of the trust root of a keyless identity, else empty",
    )
    issuer = serializers.CharField(
        max_length=300,
        default="",
        allow_blank=True,
        help_text="OIDC issuer of a keyless identity, else empty",
    )


class SoleSignaturesSerializer(Serializer):
    """The versions that you may see and that lose their only trusted signature with a removal."""

    total = serializers.IntegerField()
    versions = serializers.ListField(
        child=serializers.CharField(), help_text=f"the first {MOST_VERSIONS}: vision/detector:3"
    )


class TrustedSignerDetailSerializer(TrustedSignerSerializer):
    only_signature_of = SoleSignaturesSerializer(read_only=True)


class RootInstanceSerializer(Serializer):
    """An authority or log of a trust root."""

    kind = serializers.CharField(
        help_text="certificate authority, timestamp authority, transparency log, certificate log"
    )
    name = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True, help_text="Null while it is in use.")
    certificates_until = serializers.DateTimeField(
        allow_null=True, help_text="when the first certificate of an authority ends"
    )


class TrustRootSerializer(Serializer):
    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    sha256 = serializers.CharField(help_text="SHA-256 of its document.")
    contents = RootInstanceSerializer(many=True)
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    replaced_at = serializers.DateTimeField(allow_null=True)


class TrustRootDetailSerializer(TrustRootSerializer):
    document = serializers.CharField()
    identities = serializers.ListField(child=serializers.CharField(), help_text="names of signers")
    only_signature_of = SoleSignaturesSerializer()


class TrustRootDocumentSerializer(Serializer):
    document = serializers.CharField(
        max_length=MOST_BYTES, trim_whitespace=False, help_text="text of a trusted_root.json"
    )


class TrustRootDraftSerializer(TrustRootDocumentSerializer):
    name = serializers.CharField(max_length=80)


class SigningRuleSerializer(Serializer):
    """A signing rule. Fields that are left out or empty match anything."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=80)
    team = serializers.CharField(default="", allow_blank=True, help_text="Empty means all teams.")
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
