"""Golden requests, what a candidate answered before traffic, and posting what answers are like."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.guards.domain.answers.answer_metrics import MOST_VALUES, AnswerKind
from deployments.guards.domain.evidence import Verdict
from deployments.quality.domain import golden_requests as quality_golden_requests
from deployments.quality.selectors import quality
from deployments.quality.services import golden_requests, observations
from deployments.registry.selectors import versions
from portal.api.base_serializer import Serializer, choice_of
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["golden requests"]


class ToleranceSerializer(Serializer):
    absolute = serializers.FloatField(default=0.0, min_value=0)
    relative = serializers.FloatField(default=0.0, min_value=0, max_value=1)


class GoldenRequestSerializer(Serializer):
    """A golden request. It is immutable: saving the same name again makes its next number."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    number = serializers.IntegerField()
    request = serializers.JSONField(help_text="Request in Triton's format, with inputs.")
    expected = serializers.JSONField(help_text="the expected outputs")
    tolerances = serializers.DictField(child=ToleranceSerializer())
    version = serializers.CharField(
        source="version.label",
        default=None,
        allow_null=True,
        help_text="version that gave the answer",
    )
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    retired_at = serializers.DateTimeField(allow_null=True)


class NewGoldenRequestSerializer(Serializer):
    name = serializers.CharField(max_length=quality_golden_requests.LONGEST_NAME)
    request = serializers.JSONField(
        help_text="body of the v2 inference protocol; at most 256 KiB, data as JSON"
    )
    expected = serializers.JSONField(help_text="the answer, or its list of outputs")
    tolerances = serializers.DictField(
        child=ToleranceSerializer(),
        default=dict,
        help_text=(
            "Tolerances by output; the default depends on the datatype. |got - expected| <= "
            "absolute + relative * |expected|. Integers and text must be equal."
        ),
    )
    version_id = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text=("version that gave the answer; defines the signature"),
    )


class DifferenceSerializer(Serializer):
    output = serializers.CharField()
    elements = serializers.IntegerField()
    beyond = serializers.IntegerField(help_text="elements beyond tolerance")
    largest_absolute = serializers.FloatField(allow_null=True)
    largest_relative = serializers.FloatField(allow_null=True)
    mismatch = serializers.CharField(help_text="the first mismatch; empty if none")
    is_within = serializers.BooleanField()


class AnswerSerializer(Serializer):
    name = serializers.CharField()
    number = serializers.IntegerField()
    verdict = choice_of(Verdict)
    message = serializers.CharField()
    against_expected = DifferenceSerializer(many=True)
    against_stable = DifferenceSerializer(many=True)
    stable_message = serializers.CharField(help_text="why stable was not compared")
    checked_at = serializers.DateTimeField(allow_null=True)


class BeforeTrafficSerializer(Serializer):
    verdict = choice_of(Verdict)
    message = serializers.CharField()
    signature_verdict = choice_of(Verdict)
    signature_message = serializers.CharField()
    checked_at = serializers.DateTimeField(allow_null=True)
    rows = AnswerSerializer(many=True)


class NewObservationsSerializer(Serializer):
    """A batch of values of one kind: labels as texts, lengths as whole numbers, structured as booleans (true:
    the answer had the right form), embeddings as lists of numbers.
    """

    revision = serializers.IntegerField(help_text="revision that gave the answers")
    kind = choice_of(AnswerKind)
    values = serializers.ListField(
        child=serializers.JSONField(), min_length=1, max_length=MOST_VALUES
    )


class ObservationsSerializer(Serializer):
    revision = serializers.IntegerField(source="revision_number")
    kind = choice_of(AnswerKind)
    n = serializers.IntegerField()
    reference_n = serializers.IntegerField(
        help_text="number added to the reference set while it was incomplete"
    )


class GoldenRequestsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_golden_requests",
        tags=TAGS,
        responses={200: GoldenRequestSerializer(many=True), 404: PROBLEM},
        description=(
            "Golden requests that each candidate of the model must pass before it gets traffic."
        ),
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        model = versions.get_model(actor=actor_of(request), team_slug=team, name=name)
        rows = quality.golden_requests_of(model)
        return Response(GoldenRequestSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="save_golden_request",
        tags=TAGS,
        request=NewGoldenRequestSerializer,
        responses={201: GoldenRequestSerializer, **REFUSALS},
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        body = read_body(NewGoldenRequestSerializer, request)
        row = golden_requests.save(actor=actor_of(request), team_slug=team, model_name=name, **body)
        return Response(GoldenRequestSerializer(row).data, status=status.HTTP_201_CREATED)


class GoldenRequestView(APIView):
    @extend_schema(
        operation_id="get_golden_request",
        tags=TAGS,
        responses={200: GoldenRequestSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, golden_id: int) -> Response:
        row = quality.get_golden_request(actor=actor_of(request), golden_id=golden_id)
        return Response(GoldenRequestSerializer(row).data)

    @extend_schema(
        operation_id="delete_golden_request",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
        description="It is no longer sent to new candidates. Running rollouts keep it.",
    )
    def delete(self, request: Request, golden_id: int) -> Response:
        golden_requests.retire(actor=actor_of(request), golden_id=golden_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ObservationsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="post_observations",
        tags=["deployments"],
        request=NewObservationsSerializer,
        responses={201: ObservationsSerializer, **REFUSALS},
        description="Report answer metrics of a serving revision. Only aggregates are stored. "
        "During a rollout they feed its model-quality guards: post them for "
        "stable and candidate. Send an Idempotency-Key so that a repeated batch "
        "counts once.",
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        body: dict[str, Any] = read_body(NewObservationsSerializer, request)
        posted = observations.post(
            actor=actor_of(request),
            deployment_id=deployment_id,
            revision_number=body["revision"],
            kind=AnswerKind(body["kind"]),
            values=body["values"],
        )
        return Response(ObservationsSerializer(posted).data, status=status.HTTP_201_CREATED)
