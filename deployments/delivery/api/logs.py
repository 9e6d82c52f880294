"""The last lines of a pod's log, for terminals and notebooks."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.delivery.services import live_objects
from deployments.serving.api.serializers import TAGS
from deployments.serving.selectors import deployments
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM

_MOST_LINES: Final = 2_000


class LogQuerySerializer(Serializer):
    pod = serializers.CharField(
        default="", allow_blank=True, max_length=253, help_text="default: the newest pod"
    )
    lines = serializers.IntegerField(default=200, min_value=1, max_value=_MOST_LINES)


class LogPodSerializer(Serializer):
    """A pod of a deployment."""

    name = serializers.CharField()
    phase = serializers.CharField()
    is_ready = serializers.BooleanField()


class LogSerializer(Serializer):
    """The last lines of one pod; `problem` says why there are none."""

    pod = serializers.CharField(help_text="Empty if the deployment has no pod.")
    pods = LogPodSerializer(many=True, help_text="newest revision first")
    text = serializers.CharField(help_text="the last lines")
    problem = serializers.CharField(help_text="why there is no text; empty otherwise")


class LogsView(APIView):
    @extend_schema(
        operation_id="get_deployment_logs",
        tags=TAGS,
        parameters=[LogQuerySerializer],
        responses={200: LogSerializer, 404: PROBLEM, 422: PROBLEM},
        description="The last lines of one pod's log, read from the cluster now.",
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        query = read_query(LogQuerySerializer, request)
        actor = actor_of(request)
        deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        pods = live_objects.pods_of(deployment)
        pod = query["pod"] or (pods[0].name if pods else "")
        log = live_objects.read_log(
            actor=actor, deployment_id=deployment_id, pod=pod, lines=query["lines"]
        )
        answer = {"pod": pod, "pods": pods, "text": log.text, "problem": log.problem}
        return Response(LogSerializer(answer).data)
