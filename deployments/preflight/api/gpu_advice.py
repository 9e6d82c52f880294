"""Sizing advice: memory term by term, ranked GPU choices, and rejected ones with reasons."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments import rejections
from deployments.preflight.services import gpu_advice
from deployments.preflight.services.gpu_advice import Load
from deployments.sizing.domain.memory import BITS, Attention, LanguageModel
from deployments.sizing.domain.ranking import Advice, Choice
from deployments.spec.api.serializers import AdditionalModelSerializer, additional_models_of
from deployments.spec.domain.serving_spec import AdditionalModel
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

_MAX_INTEGER = 2**31 - 1
_MAX_ID = 2**63 - 1


class AttentionSerializer(Serializer):
    layers = serializers.IntegerField(min_value=1, max_value=10_000)
    kv_heads = serializers.IntegerField(min_value=1, max_value=10_000)
    head_size = serializers.IntegerField(min_value=1, max_value=100_000)


class LanguageModelSerializer(Serializer):
    """The language model to size. If `attention` is left out, the KV cache is estimated from the model size."""

    parameters_millions = serializers.IntegerField(min_value=1, max_value=100_000_000)
    precision = serializers.ChoiceField(choices=list(BITS), default="bf16")
    kv_precision = serializers.ChoiceField(choices=list(BITS), default="bf16")
    context_tokens = serializers.IntegerField(default=4096, min_value=1, max_value=_MAX_INTEGER)
    concurrency = serializers.IntegerField(default=8, min_value=1, max_value=100_000)
    memory_percent = serializers.IntegerField(
        default=90, help_text="Share of each GPU's memory for the server, in percent."
    )
    data_parallel = serializers.IntegerField(
        default=1,
        min_value=1,
        max_value=16,
        help_text="copies of the model, each on GPUs of its own",
    )
    attention = AttentionSerializer(required=False)


class SizingRequestSerializer(Serializer):
    version_id = serializers.IntegerField(min_value=1, max_value=_MAX_ID)
    cluster_id = serializers.IntegerField(min_value=1, max_value=_MAX_ID)
    requests_per_second = serializers.IntegerField(
        required=False, min_value=1, max_value=_MAX_INTEGER
    )
    instances = serializers.IntegerField(
        default=1, min_value=1, max_value=64, help_text="copies of the model on each GPU"
    )
    max_replicas = serializers.IntegerField(default=1, min_value=1, max_value=100)
    language_model = LanguageModelSerializer(required=False)
    additional_models = AdditionalModelSerializer(
        many=True, required=False, help_text="additional models of multi-model serving"
    )


class TermSerializer(Serializer):
    name = serializers.CharField()
    mib = serializers.IntegerField()
    detail = serializers.CharField()


class RefusalSerializer(Serializer):
    reason = serializers.CharField(help_text="a reason code, for example quota")
    message = serializers.CharField()
    is_final = serializers.BooleanField(help_text="false: it can still be requested")


class ChoiceSerializer(Serializer):
    instance_type = serializers.CharField(source="offer.instance_type")
    gpu_name = serializers.CharField(source="offer.gpu_name")
    gpu_resource = serializers.CharField(source="offer.gpu_resource")
    gpus = serializers.IntegerField(source="offer.gpus", help_text="per replica")
    is_claimed = serializers.BooleanField(
        source="offer.is_claimed",
        help_text="devices of a DRA driver: request it with placement.device_claims",
    )
    share = serializers.CharField(source="offer.kind", help_text="whole, mig, mps or time-slice")
    memory_mib = serializers.IntegerField(
        source="offer.memory_mib", help_text="Memory of each GPU."
    )
    needed_mib = serializers.IntegerField(help_text="Memory needed on each GPU.")
    headroom_percent = serializers.IntegerField()
    replicas = serializers.IntegerField()
    usd_per_month = serializers.SerializerMethodField(help_text="Null if unknown.")
    free_replicas = serializers.IntegerField(source="offer.free_replicas", allow_null=True)
    is_recommended = serializers.BooleanField()
    explanation = serializers.CharField()
    also_on = serializers.ListField(
        child=serializers.CharField(),
        help_text="other ranked instance types with as many units of the same GPU resource, for "
        "placement.other_instance_types",
    )
    refusals = RefusalSerializer(many=True)

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_usd_per_month(self, choice: Choice) -> str | None:
        return None if choice.month_amount is None else str(choice.month_amount)


class SizingSerializer(Serializer):
    needed_mib = serializers.SerializerMethodField(help_text="Upper bound on one GPU.")
    min_mib = serializers.SerializerMethodField(help_text="lower bound")
    is_measured = serializers.BooleanField(source="need.is_measured")
    basis = serializers.CharField(source="need.basis")
    terms = TermSerializer(source="need.terms", many=True)
    ranked = ChoiceSerializer(many=True)
    rejected = ChoiceSerializer(many=True)

    def get_needed_mib(self, advice: Advice) -> int:
        return advice.need.mib_on(1)

    def get_min_mib(self, advice: Advice) -> int:
        return advice.need.min_mib_on(1)


class SizingView(APIView):
    @extend_schema(
        operation_id="advise_sizing",
        tags=["deployments"],
        request=SizingRequestSerializer,
        responses={200: SizingSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
        description=(
            "The GPU memory of the version, term by term, and GPU choices ranked by price, with "
            "headroom; rejected choices with their reasons. Writes nothing."
        ),
    )
    def post(self, request: Request) -> Response:
        body = read_body(SizingRequestSerializer, request)
        load = Load(
            requests_per_second=body.get("requests_per_second"),
            instances=body["instances"],
            max_replicas=body["max_replicas"],
            language=_language(body.get("language_model")),
            additional_models=_additional_models(body.get("additional_models", [])),
        )
        advice = gpu_advice.advise(
            actor=actor_of(request),
            version_id=body["version_id"],
            cluster_id=body["cluster_id"],
            load=load,
        )
        return Response(SizingSerializer(advice).data)


def _additional_models(data: list[dict[str, Any]]) -> tuple[AdditionalModel, ...]:
    with rejections.as_invalid():
        return additional_models_of(data)


def _language(data: dict[str, Any] | None) -> LanguageModel | None:
    if data is None:
        return None
    attention = data.get("attention")
    values = {name: value for name, value in data.items() if name != "attention"}
    with rejections.as_invalid("language_model."):
        return LanguageModel(**values, attention=Attention(**attention) if attention else None)
