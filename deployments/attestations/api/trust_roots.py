"""Sigstore trust roots by REST."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.attestations.api.serializers import (
    TrustRootDetailSerializer,
    TrustRootDocumentSerializer,
    TrustRootDraftSerializer,
    TrustRootSerializer,
)
from deployments.attestations.api.views import TAGS, sole_signatures
from deployments.attestations.selectors import trust_roots
from deployments.attestations.services import roots
from deployments.models import TrustRoot
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM


class TrustRootsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_trust_roots",
        tags=TAGS,
        responses=TrustRootSerializer(many=True),
        description="Sigstore trust roots, whose authorities and logs vouch for keyless signatures.",
    )
    def get(self, request: Request) -> Response:
        return Response(TrustRootSerializer(trust_roots.list_roots(), many=True).data)

    @extend_schema(
        operation_id="add_trust_root",
        tags=TAGS,
        request=TrustRootDraftSerializer,
        responses={201: TrustRootSerializer, 403: PROBLEM, 409: PROBLEM, 422: PROBLEM},
        description="Platform admins only. Nothing is trusted by it until an identity is: add a trusted "
        "signer of the kind keyless.",
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        row = roots.add(actor=actor, **read_body(TrustRootDraftSerializer, request))
        return Response(TrustRootSerializer(row).data, status=status.HTTP_201_CREATED)


class TrustRootView(APIView):
    @extend_schema(
        operation_id="get_trust_root",
        tags=TAGS,
        responses={200: TrustRootDetailSerializer, 404: PROBLEM},
        description=(
            "The answer has its document, and the versions that lose their only trusted signature "
            "when it is removed."
        ),
    )
    def get(self, request: Request, root_id: int) -> Response:
        return Response(_detail(actor_of(request), trust_roots.get_root(root_id)))

    @extend_schema(
        operation_id="replace_trust_root",
        tags=TAGS,
        request=TrustRootDocumentSerializer,
        responses={
            200: TrustRootSerializer,
            403: PROBLEM,
            404: PROBLEM,
            409: PROBLEM,
            422: PROBLEM,
        },
        description="Platform admins only. When its authorities or logs rotate: its identities stay, and "
        "their signatures count again once they are verified with the new document.",
    )
    def put(self, request: Request, root_id: int) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        body = read_body(TrustRootDocumentSerializer, request)
        row = roots.replace(actor=actor, root_id=root_id, **body)
        return Response(TrustRootSerializer(row).data)

    @extend_schema(
        operation_id="remove_trust_root",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM},
        description="Its identities are removed too: their signatures stop counting at once. Running deployments are not affected.",
    )
    def delete(self, request: Request, root_id: int) -> Response:
        roots.remove(actor=actor_of(request), root_id=root_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _detail(actor: Actor, row: TrustRoot) -> dict[str, Any]:
    visible = {team.pk for team in policy.visible_teams(actor)}
    identities = trust_roots.identities_of(row)
    return {
        **TrustRootSerializer(row).data,
        "document": row.document,
        # One of a team is its own matter.
        "identities": [one.name for one in identities if one.team_id in {None, *visible}],
        "only_signature_of": sole_signatures(actor, *(one.pk for one in identities)),
    }


urlpatterns: list[URLPattern] = [
    path("trust-roots", TrustRootsView.as_view(), name="trust-roots"),
    path("trust-roots/<int:root_id>", TrustRootView.as_view(), name="trust-root"),
]
