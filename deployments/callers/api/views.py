"""Keys of callers by REST. A key is in the response that creates it, and nowhere else."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.access.domain import catalogue
from deployments.callers.selectors import keys as key_views
from deployments.callers.services import keys, limits
from deployments.callers.services.issuing import KeyLimits, NewKey
from deployments.callers.services.keys import KeyDraft
from deployments.models import CallerKey
from deployments.states import ConsumerKind
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["callers"]


_TOKENS_HELP = (
    "of a language model. Counted from its answers, so the key is paused some seconds after it used too many; "
    "null is no limit"
)


class CallerKeySerializer(Serializer):
    id = serializers.IntegerField(source="row.pk")
    caller = serializers.CharField(source="row.consumer.name")
    kind = choice_of(ConsumerKind, source="row.consumer.kind")
    contact = serializers.CharField(source="row.consumer.contact")
    prefix = serializers.CharField(
        source="row.prefix",
        help_text="Characters that tell keys apart: the first of a key, the last of a signed one.",
    )
    token_issuer = serializers.CharField(
        source="row.token_issuer.name",
        default="",
        help_text="Issuer whose tokens the caller sends. Empty for a key.",
    )
    claim_value = serializers.CharField(
        source="row.claim_value", help_text="Value of the issuer's claim in those tokens."
    )
    state = serializers.ChoiceField(
        choices=["active", "ending", "expired", "revoked"],
        help_text="ending: replaced by another key, and still accepted until ends_at",
    )
    requests_per_minute = serializers.IntegerField(
        source="row.requests_per_minute",
        allow_null=True,
        help_text="the gateway answers 429 to more; null is no limit",
    )
    tokens_per_minute = serializers.IntegerField(
        source="row.tokens_per_minute", allow_null=True, help_text=_TOKENS_HELP
    )
    tokens_per_day = serializers.IntegerField(
        source="row.tokens_per_day", allow_null=True, help_text=_TOKENS_HELP
    )
    tokens_this_minute = serializers.IntegerField(
        source="use.minute_tokens",
        help_text="counted so far, with what earlier minutes used above the limit",
    )
    tokens_today = serializers.IntegerField(source="use.day_tokens", help_text="UTC")
    paused_until = serializers.DateTimeField(
        source="row.paused_until",
        allow_null=True,
        help_text="it used too many tokens: the gateway answers 429 until then",
    )
    is_at_gateway = serializers.BooleanField(
        source="gateway.is_current",
        default=None,
        allow_null=True,
        help_text="whether the gateway has the last change of this deployment's keys and limits; null where it is "
        "open, or nothing was changed yet",
    )
    gateway_written_at = serializers.DateTimeField(
        source="gateway.written_at",
        default=None,
        allow_null=True,
        help_text="when the cluster last took the keys and limits of this deployment",
    )
    gateway_problem = serializers.CharField(
        source="gateway.problem",
        default="",
        help_text="why the cluster refused them, in its own words; empty where it did not",
    )
    created_by = serializers.CharField(source="row.created_by.username")
    created_at = serializers.DateTimeField(source="row.created_at")
    ends_at = serializers.DateTimeField(source="ended_at")


_LIMIT: dict[str, Any] = {
    "allow_null": True,
    "min_value": 1,
    "max_value": limits.MAX_REQUESTS_PER_MINUTE,
    "help_text": "the gateway answers 429 to more; null is no limit",
}
_TOKENS: dict[str, dict[str, Any]] = {
    name: {"allow_null": True, "min_value": 1, "max_value": most, "help_text": _TOKENS_HELP}
    for name, most in (
        ("minute", limits.MAX_TOKENS_PER_MINUTE),
        ("day", limits.MAX_TOKENS_PER_DAY),
    )
}
_DAYS: dict[str, Any] = {
    "allow_null": True,
    "min_value": 1,
    "max_value": keys.MAX_DAYS,
    "help_text": f"how long the key lives: {keys.DEFAULT_DAYS} unless stated; the platform may allow fewer "
    "than the maximum (SLIPWAY_TOKEN_MAX_DAYS)",
}


class NewCallerKeySerializer(CallerKeySerializer):
    key = serializers.CharField(help_text="shown once; empty for a caller with tokens of an issuer")


class CallerKeyDraftSerializer(Serializer):
    caller = serializers.CharField(
        max_length=40, help_text="a new name makes a caller of the team; it needs a contact"
    )
    kind = choice_of(ConsumerKind, default=ConsumerKind.SERVICE.value)
    contact = serializers.CharField(max_length=200, default="", allow_blank=True)
    days = serializers.IntegerField(default=None, **_DAYS)
    requests_per_minute = serializers.IntegerField(default=None, **_LIMIT)
    tokens_per_minute = serializers.IntegerField(default=None, **_TOKENS["minute"])
    tokens_per_day = serializers.IntegerField(default=None, **_TOKENS["day"])
    token_issuer = serializers.CharField(
        max_length=40,
        default="",
        allow_blank=True,
        help_text="let the caller in with tokens of this issuer, without a key",
    )
    claim_value = serializers.CharField(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="Value of the issuer's claim in the caller's tokens.",
    )


class KeyLimitSerializer(Serializer):
    requests_per_minute = serializers.IntegerField(**_LIMIT)
    tokens_per_minute = serializers.IntegerField(required=False, **_TOKENS["minute"])
    tokens_per_day = serializers.IntegerField(required=False, **_TOKENS["day"])


class KeyRotationSerializer(Serializer):
    overlap_hours = serializers.IntegerField(
        default=keys.DEFAULT_OVERLAP_HOURS,
        min_value=0,
        max_value=keys.MAX_OVERLAP_HOURS,
        help_text="how long the old key still works",
    )
    days = serializers.IntegerField(default=None, **_DAYS)


class CallerKeysView(APIView):
    @extend_schema(
        operation_id="list_caller_keys",
        tags=TAGS,
        responses={200: CallerKeySerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        _, rows = key_views.list_visible(actor=actor_of(request), deployment_id=deployment_id)
        return Response(CallerKeySerializer(rows, many=True).data)

    @extend_schema(
        operation_id="create_caller_key",
        tags=TAGS,
        request=CallerKeyDraftSerializer,
        responses={201: NewCallerKeySerializer, **REFUSALS},
        description=" ".join(kind.creation_help for kind in catalogue.KINDS if kind.creation_help),
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        body: dict[str, Any] = read_body(CallerKeyDraftSerializer, request)
        draft = KeyDraft(
            name=body["caller"],
            kind=ConsumerKind(body["kind"]),
            contact=body["contact"],
            days=body["days"],
            limits=KeyLimits(
                body["requests_per_minute"], body["tokens_per_minute"], body["tokens_per_day"]
            ),
            token_issuer=body["token_issuer"],
            claim_value=body["claim_value"],
        )
        made = keys.create(actor=actor_of(request), deployment_id=deployment_id, draft=draft)
        return _created(made)


class RotateKeyView(APIView):
    @extend_schema(
        operation_id="rotate_caller_key",
        tags=TAGS,
        request=KeyRotationSerializer,
        responses={201: NewCallerKeySerializer, **REFUSALS},
        description="Answers with a new key of the same caller, with the same limit. A caller with tokens of an "
        "issuer is renewed at once: no key, no overlap.",
    )
    def post(self, request: Request, deployment_id: int, key_id: int) -> Response:
        body: dict[str, Any] = read_body(KeyRotationSerializer, request)
        made = keys.rotate(
            actor=actor_of(request), deployment_id=deployment_id, key_id=key_id, **body
        )
        return _created(made)


class LimitKeyView(APIView):
    @extend_schema(
        operation_id="limit_caller_key",
        tags=TAGS,
        request=KeyLimitSerializer,
        responses={200: CallerKeySerializer, **REFUSALS},
        description="The gateway follows within seconds. Each of its proxies counts requests for itself. "
        "A token limit that is left out is not changed.",
    )
    def post(self, request: Request, deployment_id: int, key_id: int) -> Response:
        body: dict[str, Any] = read_body(KeyLimitSerializer, request)
        row = limits.set_limits(
            actor=actor_of(request),
            deployment_id=deployment_id,
            key_id=key_id,
            limits=KeyLimits(**body),
            only=body.keys(),
        )
        return _shown(row)


class RevokeKeyView(APIView):
    @extend_schema(
        operation_id="revoke_caller_key",
        tags=TAGS,
        request=None,
        responses={200: CallerKeySerializer, **REFUSALS},
        description="The gateway refuses it within seconds.",
    )
    def post(self, request: Request, deployment_id: int, key_id: int) -> Response:
        row = keys.revoke(actor=actor_of(request), deployment_id=deployment_id, key_id=key_id)
        return _shown(row)


def _shown(row: CallerKey) -> Response:
    view = key_views.view_with_gateway(row)
    return Response(CallerKeySerializer(view).data)


def _created(made: NewKey) -> Response:
    view = key_views.view_with_gateway(made.row)
    body = {**CallerKeySerializer(view).data, "key": made.plain}
    response = Response(body, status=status.HTTP_201_CREATED)
    response["Cache-Control"] = "no-store"
    return response


_KEYS = "deployments/<int:deployment_id>/callers"
urlpatterns: list[URLPattern] = [
    path(_KEYS, CallerKeysView.as_view(), name="caller-keys"),
    path(f"{_KEYS}/<int:key_id>/rotate", RotateKeyView.as_view(), name="rotate-caller-key"),
    path(f"{_KEYS}/<int:key_id>/limit", LimitKeyView.as_view(), name="limit-caller-key"),
    path(f"{_KEYS}/<int:key_id>/revoke", RevokeKeyView.as_view(), name="revoke-caller-key"),
]
