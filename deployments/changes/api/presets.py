"""Presets of the platform and of teams, and requests that start from one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.changes.selectors import presets as preset_selectors
from deployments.changes.services import presets
from deployments.serving.api.serializers import TAGS
from portal.accounts import teams
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_data
from portal.api.responses import PROBLEM


class NewPresetSerializer(Serializer):
    name = serializers.CharField(max_length=60, help_text="replaces a preset of the same name")
    settings = serializers.DictField(
        help_text="a part of a spec, without what belongs to one version or one deployment"
    )


class PresetSerializer(Serializer):
    """Settings by name that a new deployment may start from."""

    id = serializers.IntegerField()
    team = serializers.CharField(
        source="team.slug",
        default=None,
        allow_null=True,
        help_text="The team that may start from it. Null: every team may.",
    )
    name = serializers.CharField()
    settings = serializers.DictField()
    saved_by = serializers.CharField(source="saved_by.username")
    saved_at = serializers.DateTimeField()


class PresetsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_deployment_presets",
        tags=TAGS,
        responses={200: PresetSerializer(many=True), 404: PROBLEM},
        description="The platform's presets, then those of the team.",
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        rows = preset_selectors.list_presets(actor=actor, team=team)
        return Response(PresetSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="save_deployment_preset",
        tags=TAGS,
        request=NewPresetSerializer,
        responses={201: PresetSerializer, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM, 422: PROBLEM},
        description="Leads only. Existing deployments are not affected.",
    )
    def post(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = read_body(NewPresetSerializer, request)
        made = presets.save(actor=actor, team=team, **body)
        return Response(PresetSerializer(made).data, status=status.HTTP_201_CREATED)


class PresetView(APIView):
    @extend_schema(
        operation_id="remove_deployment_preset",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
    )
    def delete(self, request: Request, slug: str, preset_id: int) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        presets.remove(actor=actor, team=team, preset_id=preset_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class PlatformPresetsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_platform_presets",
        tags=TAGS,
        responses={200: PresetSerializer(many=True)},
    )
    def get(self, request: Request) -> Response:
        return Response(PresetSerializer(preset_selectors.list_platform_presets(), many=True).data)

    @extend_schema(
        operation_id="save_platform_preset",
        tags=TAGS,
        request=NewPresetSerializer,
        responses={201: PresetSerializer, 403: PROBLEM, 409: PROBLEM, 422: PROBLEM},
        description="Platform admins only. Every team may start from it.",
    )
    def post(self, request: Request) -> Response:
        body = read_body(NewPresetSerializer, request)
        made = presets.save(actor=actor_of(request), team=None, **body)
        return Response(PresetSerializer(made).data, status=status.HTTP_201_CREATED)


class PlatformPresetView(APIView):
    @extend_schema(
        operation_id="remove_platform_preset",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
    )
    def delete(self, request: Request, preset_id: int) -> Response:
        presets.remove(actor=actor_of(request), team=None, preset_id=preset_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


def read_draft(serializer: type[Serializer], request: Request) -> dict[str, Any]:
    """Read the body of a new deployment. Of a preset it takes what its spec leaves out."""
    data: Any = request.data
    preset_id, version_id = _read_id(data, "preset_id"), _read_id(data, "version_id")
    spec = data.get("spec", {}) if isinstance(data, Mapping) else None
    if preset_id is None or version_id is None or not isinstance(spec, Mapping):
        return read_body(serializer, request)
    filled = presets.apply(
        actor=actor_of(request), preset_id=preset_id, version_id=version_id, spec=spec
    )
    return read_data(serializer, {**data, "spec": filled})


def _read_id(data: Any, name: str) -> int | None:
    """Return the id in the body. None for one that the serializer refuses, or that is left out."""
    value = data.get(name) if isinstance(data, Mapping) else None
    text = "" if isinstance(value, bool) else str(value)
    is_id = text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if is_id else None
