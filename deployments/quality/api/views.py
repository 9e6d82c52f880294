"""Golden requests, what a candidate answered before traffic, and posting what answers are like."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.api.delivery import REFUSALS, read
from deployments.api.delivery_serializers import Shape
from deployments.domain import golden
from deployments.domain.evidence import Verdict
from deployments.domain.quality import MOST_VALUES, Kind
from deployments.selectors import quality, registry, rollouts
from deployments.services import golden_requests, quality_observations
from portal.api.idempotency import IdempotentMixin
from portal.api.views import PROBLEM, actor_of

TAGS = ["golden requests"]


class ToleranceSerializer(Shape):
    absolute = serializers.FloatField(default=0.0, min_value=0)
    relative = serializers.FloatField(default=0.0, min_value=0, max_value=1)


class GoldenRequestSerializer(Shape):
    """Immutable: saving the same name again makes its next number."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    number = serializers.IntegerField()
    request = serializers.JSONField(help_text="as Triton takes it: inputs")
    expected = serializers.JSONField(help_text="the right outputs")
    tolerances = serializers.DictField(child=ToleranceSerializer())
    version = serializers.CharField(
        source="version.label", default=None, allow_null=True, help_text="whose answer it is"
    )
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    retired_at = serializers.DateTimeField(allow_null=True)


class NewGoldenRequestSerializer(Shape):
    name = serializers.CharField(max_length=golden.LONGEST_NAME)
    request = serializers.JSONField(
        help_text="body of the v2 inference protocol; at most 256 KiB, data as JSON"
    )
    expected = serializers.JSONField(help_text="the answer, or its list of outputs")
    tolerances = serializers.DictField(
        child=ToleranceSerializer(),
        default=dict,
        help_text="by output; left out: the usual one of its datatype. |got - expected| <= "
        "absolute + relative * |expected|. Whole numbers and texts must be equal.",
    )
    version_id = serializers.IntegerField(
        required=False, allow_null=True, help_text="whose answer it is; decides the signature"
    )


class DifferenceSerializer(Shape):
    output = serializers.CharField()
    elements = serializers.IntegerField()
    beyond = serializers.IntegerField(help_text="elements beyond tolerance")
    largest_absolute = serializers.FloatField(allow_null=True)
    largest_relative = serializers.FloatField(allow_null=True)
    first_words = serializers.CharField(help_text="the first that is wrong; empty when none is")
    is_within = serializers.BooleanField()


class AnswerSerializer(Shape):
    name = serializers.CharField()
    number = serializers.IntegerField()
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Verdict])
    words = serializers.CharField()
    against_expected = DifferenceSerializer(many=True)
    against_stable = DifferenceSerializer(many=True)
    stable_words = serializers.CharField(help_text="why stable was not compared")
    checked_at = serializers.DateTimeField(allow_null=True)


class BeforeTrafficSerializer(Shape):
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Verdict])
    words = serializers.CharField()
    signature_verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Verdict])
    signature_words = serializers.CharField()
    checked_at = serializers.DateTimeField(allow_null=True)
    rows = AnswerSerializer(many=True)


class NewObservationsSerializer(Shape):
    """One batch of one kind: labels as texts, lengths as whole numbers, structured as booleans
    (true: the answer had the right form), embeddings as lists of numbers."""

    revision = serializers.IntegerField(help_text="number of the revision that gave the answers")
    kind = serializers.ChoiceField(choices=[kind.value for kind in Kind])
    values = serializers.ListField(
        child=serializers.JSONField(), min_length=1, max_length=MOST_VALUES
    )


class ObservationsSerializer(Shape):
    revision = serializers.IntegerField(source="revision_number")
    kind = serializers.ChoiceField(choices=[kind.value for kind in Kind])
    n = serializers.IntegerField()
    reference_n = serializers.IntegerField(
        help_text="how many went into the reference set that was still to be captured"
    )


class GoldenRequestsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_golden_requests",
        tags=TAGS,
        responses={200: GoldenRequestSerializer(many=True), 404: PROBLEM},
        description="Those that each candidate of the model must answer before it gets traffic.",
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        model = registry.get_model(actor=actor_of(request), team_slug=team, name=name)
        rows = quality.golden_requests_of(model)
        return Response(GoldenRequestSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="save_golden_request",
        tags=TAGS,
        request=NewGoldenRequestSerializer,
        responses={201: GoldenRequestSerializer, **REFUSALS},
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        body = read(NewGoldenRequestSerializer, request)
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
        description="It is not sent to later candidates. Rollouts that have begun keep it.",
    )
    def delete(self, request: Request, golden_id: int) -> Response:
        golden_requests.retire(actor=actor_of(request), golden_id=golden_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class BeforeTrafficView(APIView):
    @extend_schema(
        operation_id="get_before_traffic",
        tags=["rollouts"],
        responses={200: BeforeTrafficSerializer, 404: PROBLEM},
        description="What the candidate answered to the golden requests before it got traffic, "
        "against the expected answers and against the stable revision's.",
    )
    def get(self, request: Request, rollout_id: int) -> Response:
        rollout = rollouts.get_visible(actor=actor_of(request), rollout_id=rollout_id)
        return Response(BeforeTrafficSerializer(quality.before_traffic(rollout=rollout)).data)


class ObservationsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="post_observations",
        tags=["deployments"],
        request=NewObservationsSerializer,
        responses={201: ObservationsSerializer, **REFUSALS},
        description="What the answers of a serving revision were like. Only sums are kept. While a "
        "rollout runs they feed its model-quality guards: post those of stable and candidate. "
        "Send an Idempotency-Key, so that a batch sent twice counts once.",
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        body: dict[str, Any] = read(NewObservationsSerializer, request)
        posted = quality_observations.post(
            actor=actor_of(request),
            deployment_id=deployment_id,
            revision_number=body["revision"],
            kind=Kind(body["kind"]),
            values=body["values"],
        )
        return Response(ObservationsSerializer(posted).data, status=status.HTTP_201_CREATED)
