"""Signatures and provenance of versions, trusted signers and signing rules by REST."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.attestations.api.serializers import (
    MOST_VERSIONS,
    AttestationDraftSerializer,
    AttestationFileSerializer,
    AttestationSerializer,
    SigningRuleSerializer,
    TrustedSignerDetailSerializer,
    TrustedSignerSerializer,
)
from deployments.attestations.domain.signers import SignerKind
from deployments.attestations.selectors import attestations as attestation_views
from deployments.attestations.selectors import trust_roots
from deployments.attestations.services import attestations, trust
from deployments.attestations.services.trust import SignerDraft, SigningRuleDraft
from deployments.models import SigningRule, TrustedSigner
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["attestations"]
_OF_ADMINS = {403: PROBLEM, 409: PROBLEM, 422: PROBLEM}


class AttestationsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_attestations",
        tags=TAGS,
        responses={200: AttestationSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, version_id: int) -> Response:
        version = attestation_views.get_visible_version(
            actor=actor_of(request), version_id=version_id
        )
        rows = attestation_views.list_of(version)
        return Response(AttestationSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="add_attestation",
        tags=TAGS,
        request=AttestationDraftSerializer,
        responses={201: AttestationSerializer, **REFUSALS},
        description="Add a signature or provenance. It is verified within seconds, or once the version "
        "itself is verified.",
    )
    def post(self, request: Request, version_id: int) -> Response:
        body = read_body(AttestationDraftSerializer, request)
        row = attestations.add(actor=actor_of(request), version_id=version_id, **body)
        return Response(AttestationSerializer(row).data, status=status.HTTP_201_CREATED)


class AttestationView(APIView):
    @extend_schema(
        operation_id="get_attestation",
        tags=TAGS,
        responses={200: AttestationFileSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, version_id: int, attestation_id: int) -> Response:
        version = attestation_views.get_visible_version(
            actor=actor_of(request), version_id=version_id
        )
        row = attestation_views.get_of(version, attestation_id)
        return Response(AttestationFileSerializer(row).data)

    @extend_schema(
        operation_id="remove_attestation",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
        description="Running deployments are not affected; later requests are checked without it.",
    )
    def delete(self, request: Request, version_id: int, attestation_id: int) -> Response:
        attestations.remove(
            actor=actor_of(request), version_id=version_id, attestation_id=attestation_id
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class TrustedSignersView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_trusted_signers",
        tags=TAGS,
        responses=TrustedSignerSerializer(many=True),
        description="List those of your teams and of all teams.",
    )
    def get(self, request: Request) -> Response:
        rows = attestation_views.list_signers(actor_of(request))
        return Response([_signer_body(row) for row in rows])

    @extend_schema(
        operation_id="add_trusted_signer",
        tags=TAGS,
        request=TrustedSignerSerializer,
        responses={201: TrustedSignerSerializer, **_OF_ADMINS},
        description="Platform admins only. All attestations are verified again.",
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        body = read_body(TrustedSignerSerializer, request)
        draft = SignerDraft(**{**body, "kind": SignerKind(body["kind"])})
        row = trust.add_signer(actor=actor, draft=draft)
        return Response(_signer_body(row), status=status.HTTP_201_CREATED)


class TrustedSignerView(APIView):
    @extend_schema(
        operation_id="get_trusted_signer",
        tags=TAGS,
        responses={200: TrustedSignerDetailSerializer, 404: PROBLEM},
        description="The answer names the versions that lose their only trusted signature when it is removed.",
    )
    def get(self, request: Request, signer_id: int) -> Response:
        actor = actor_of(request)
        row = trust_roots.get_signer(actor=actor, signer_id=signer_id)
        return Response({**_signer_body(row), "only_signature_of": sole_signatures(actor, row.pk)})

    @extend_schema(
        operation_id="remove_trusted_signer",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM},
        description="Its signatures stop counting at once. Running deployments are not affected.",
    )
    def delete(self, request: Request, signer_id: int) -> Response:
        trust.remove_signer(actor=actor_of(request), signer_id=signer_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SigningRulesView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_signing_rules",
        tags=TAGS,
        responses=SigningRuleSerializer(many=True),
        description="List those of your teams and of all teams.",
    )
    def get(self, request: Request) -> Response:
        rows = attestation_views.list_rules(actor_of(request))
        return Response([_rule_body(row) for row in rows])

    @extend_schema(
        operation_id="make_signing_rule",
        tags=TAGS,
        request=SigningRuleSerializer,
        responses={201: SigningRuleSerializer, **_OF_ADMINS},
        description="Requests to serve a version without what the rule requires are refused. Platform "
        "admins only.",
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        body = read_body(SigningRuleSerializer, request)
        draft = SigningRuleDraft(
            name=body["name"],
            team=body["team"],
            environments=tuple(body["environments"]),
            signers=tuple(body["signers"]),
            needs_provenance=body["needs_provenance"],
            builders=tuple(body["builders"]),
        )
        row = trust.make_rule(actor=actor, draft=draft)
        return Response(_rule_body(row), status=status.HTTP_201_CREATED)


class SigningRuleView(APIView):
    @extend_schema(
        operation_id="delete_signing_rule",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
    )
    def delete(self, request: Request, signing_rule_id: int) -> Response:
        trust.delete_rule(actor=actor_of(request), rule_id=signing_rule_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


def sole_signatures(actor: Actor, *signer_ids: int) -> dict[str, Any]:
    """Return the versions that lose their only trusted signature without these signers, in the form of
    SoleSignaturesSerializer.
    """
    rows = trust_roots.versions_only_signed_by(signer_ids, actor=actor)
    shown = [f"{row.team_slug}/{row.label}" for row in rows[:MOST_VERSIONS]]
    return {"total": len(shown) if len(shown) < MOST_VERSIONS else rows.count(), "versions": shown}


def _signer_body(row: TrustedSigner) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "team": row.team.slug if row.team else "",
        "kind": row.kind,
        "pem": row.pem,
        "identity": row.identity,
        "trust_root": row.root.name if row.root else "",
        "issuer": row.issuer,
    }


def _rule_body(row: SigningRule) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "team": row.team.slug if row.team else "",
        "environments": row.environments,
        "signers": sorted(signer.name for signer in row.signers.all()),
        "needs_provenance": row.needs_provenance,
        "builders": row.builders,
    }


_OF_VERSION = "versions/<int:version_id>/attestations"
urlpatterns: list[URLPattern] = [
    path(_OF_VERSION, AttestationsView.as_view(), name="attestations"),
    path(f"{_OF_VERSION}/<int:attestation_id>", AttestationView.as_view(), name="attestation"),
    path("trusted-signers", TrustedSignersView.as_view(), name="trusted-signers"),
    path("trusted-signers/<int:signer_id>", TrustedSignerView.as_view(), name="trusted-signer"),
    path("signing-rules", SigningRulesView.as_view(), name="signing-rules"),
    path("signing-rules/<int:signing_rule_id>", SigningRuleView.as_view(), name="signing-rule"),
]
