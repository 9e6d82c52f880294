"""Convert a config.pbtxt into settings of a deployment, and settings into the text."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.registry.domain.triton_config.text import MAX_LENGTH
from deployments.registry.selectors import triton_configs
from deployments.registry.selectors import versions as registry_versions
from deployments.rejections import as_invalid
from deployments.spec.domain.model_settings import ModelSettings
from portal.api.base_serializer import Serializer
from portal.api.definition_serializers import serializer_of
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

ModelSettingsSerializer = serializer_of(ModelSettings)


class TritonConfigSerializer(Serializer):
    text = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_LENGTH,
        trim_whitespace=False,
        help_text="a config.pbtxt. Left out, settings are written as one",
    )
    settings = ModelSettingsSerializer(
        required=False,
        help_text=(
            "Settings as in spec. With a text, only what a text cannot state is used: the size of "
            "the response cache."
        ),
    )


class ConfigProblemSerializer(Serializer):
    message = serializers.CharField()
    fix = serializers.CharField(allow_blank=True)
    line = serializers.IntegerField(help_text="Line, from 1. 0 if there is no place in the text.")
    column = serializers.IntegerField(help_text="Column, from 1.")
    is_blocking = serializers.BooleanField(help_text="false: a known trap")
    setting = serializers.CharField(allow_blank=True, help_text="path of the setting in spec")


class ConvertedConfigSerializer(Serializer):
    text = serializers.CharField(help_text="Text that a deployment with these settings has.")
    settings = ModelSettingsSerializer(
        allow_null=True, help_text="Settings for spec. Null while a problem blocks."
    )
    rest = serializers.CharField(
        allow_blank=True, help_text="the fields of the text that no setting covers, as config.pbtxt"
    )
    problems = ConfigProblemSerializer(many=True)


class TritonConfigView(APIView):
    @extend_schema(
        operation_id="convert_triton_config",
        tags=["versions"],
        request=TritonConfigSerializer,
        responses={200: ConvertedConfigSerializer, 404: PROBLEM, 422: PROBLEM},
        description="Convert a config.pbtxt into settings of a deployment of this version, or settings "
        "into the text. Both are checked against the signature. Nothing is written.",
    )
    def post(self, request: Request, version_id: int) -> Response:
        body = read_body(TritonConfigSerializer, request)
        version = registry_versions.get_version(actor=actor_of(request), version_id=version_id)
        with as_invalid("settings."):
            settings = ModelSettings.from_json(_stated(request))
        if "text" in body:
            converted = triton_configs.read_text(version, body["text"], settings)
        else:
            converted = triton_configs.write_settings(version, settings)
        return Response(_shown(converted))


def _stated(request: Request) -> Any:
    """Return the settings as they were sent: unknown ones are refused by the definition, with the nearest name."""
    return (request.data.get("settings") if isinstance(request.data, dict) else None) or {}


def _shown(converted: triton_configs.Conversion) -> dict[str, Any]:
    settings = converted.settings
    return {
        "text": converted.text,
        "settings": None if settings is None else settings.model_dump(mode="json"),
        "rest": converted.rest,
        "problems": ConfigProblemSerializer(converted.problems, many=True).data,
    }
