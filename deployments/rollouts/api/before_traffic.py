"""Golden requests of a rollout before it takes traffic."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.quality.api.views import BeforeTrafficSerializer
from deployments.quality.selectors import quality
from deployments.rollouts.selectors import rollouts
from portal.api.requests import actor_of
from portal.api.responses import PROBLEM


class BeforeTrafficView(APIView):
    @extend_schema(
        operation_id="get_before_traffic",
        tags=["rollouts"],
        responses={200: BeforeTrafficSerializer, 404: PROBLEM},
        description="Answers of the candidate to the golden requests before it gets traffic, "
        "compared with the expected answers and with the stable revision.",
    )
    def get(self, request: Request, rollout_id: int) -> Response:
        rollout = rollouts.get_visible(actor=actor_of(request), rollout_id=rollout_id)
        return Response(BeforeTrafficSerializer(quality.before_traffic(rollout=rollout)).data)
