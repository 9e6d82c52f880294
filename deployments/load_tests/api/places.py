"""REST endpoints for the place where the load tests of a team run."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.load_tests.domain.choice import PodChoice
from deployments.load_tests.services import places
from portal.accounts import teams
from portal.api.definition_serializers import DefinedSerializer
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

TAGS = ["models"]


class LoadTestsSerializer(DefinedSerializer):
    definition = PodChoice
    cluster = serializers.CharField(
        max_length=40,
        allow_blank=True,
        help_text="name of the cluster; empty: on the portal's own machine, where it has a Triton",
    )


class LoadTestsView(APIView):
    @extend_schema(
        operation_id="read_load_tests",
        tags=TAGS,
        responses={200: LoadTestsSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        return Response(places.describe(places.read(actor=actor, team=team)))

    @extend_schema(
        operation_id="set_load_tests",
        tags=TAGS,
        request=LoadTestsSerializer,
        responses={200: LoadTestsSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
        description="Leads only. Applies to versions that are verified from now on.",
    )
    def put(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = dict(read_body(LoadTestsSerializer, request))
        cluster = body.pop("cluster")
        places.choose(actor=actor, team=team, cluster_name=cluster, pod=body)
        return Response(places.describe(places.read(actor=actor, team=team)))
