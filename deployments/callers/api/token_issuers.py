"""Token issuers by REST."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.access.domain.callers import RequiredClaim
from deployments.callers.selectors import token_issuers as selectors
from deployments.callers.services import token_issuers
from deployments.callers.services.token_issuers import IssuerDraft
from portal.accounts import policy
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

TAGS = ["callers"]


class RequiredClaimSerializer(Serializer):
    claim = serializers.CharField(max_length=token_issuers.LONGEST_CLAIM)
    values = serializers.ListField(
        child=serializers.CharField(max_length=token_issuers.LONGEST_VALUE),
        max_length=token_issuers.MOST_VALUES,
        help_text="a token must have one of them",
    )
    is_list = serializers.BooleanField(
        default=False, help_text="the claim is a list, for example of groups"
    )


class TokenIssuerSerializer(Serializer):
    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(
        max_length=40, help_text="Name that network.token_issuer refers to. Never reused."
    )
    cluster_id = serializers.IntegerField(
        default=None, allow_null=True, help_text="Null means all clusters."
    )
    url = serializers.CharField(
        max_length=token_issuers.LONGEST_URL, help_text="exactly as tokens have it in iss"
    )
    jwks_url = serializers.CharField(
        max_length=token_issuers.LONGEST_URL,
        help_text="Address where the gateways' proxies fetch the provider's public keys.",
    )
    audiences = serializers.ListField(
        child=serializers.CharField(max_length=token_issuers.LONGEST_VALUE),
        min_length=1,
        max_length=token_issuers.MOST_AUDIENCES,
        help_text="a token must have one of them in aud",
    )
    claim = serializers.CharField(
        max_length=token_issuers.LONGEST_CLAIM,
        default="sub",
        help_text="names the caller; nested claims with dots",
    )
    required_claims = RequiredClaimSerializer(many=True, default=list)


class TokenIssuersView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_token_issuers",
        tags=TAGS,
        responses=TokenIssuerSerializer(many=True),
        description="Identity providers whose tokens callers may send.",
    )
    def get(self, request: Request) -> Response:
        return Response(TokenIssuerSerializer(selectors.list_registered(), many=True).data)

    @extend_schema(
        operation_id="add_token_issuer",
        tags=TAGS,
        request=TokenIssuerSerializer,
        responses={201: TokenIssuerSerializer, 403: PROBLEM, 409: PROBLEM, 422: PROBLEM},
        description="Platform admins only. It cannot be changed afterwards.",
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        body: dict[str, Any] = read_body(TokenIssuerSerializer, request)
        required = [RequiredClaim.from_json(one) for one in body.pop("required_claims")]
        row = token_issuers.add(actor=actor, draft=IssuerDraft(**body, required_claims=required))
        return Response(TokenIssuerSerializer(row).data, status=status.HTTP_201_CREATED)


class TokenIssuerView(APIView):
    @extend_schema(
        operation_id="remove_token_issuer",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM},
        description="Platform admins only. Refused while a deployment takes its tokens.",
    )
    def delete(self, request: Request, token_issuer_id: int) -> Response:
        token_issuers.remove(actor=actor_of(request), issuer_id=token_issuer_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


urlpatterns: list[URLPattern] = [
    path("token-issuers", TokenIssuersView.as_view(), name="token-issuers"),
    path("token-issuers/<int:token_issuer_id>", TokenIssuerView.as_view(), name="token-issuer"),
]
