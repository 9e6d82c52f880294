"""The list of advice, and what is answered to it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.advice.api.serializers import (
    AdviceQuerySerializer,
    AdviceSerializer,
    DismissSerializer,
    SnoozeSerializer,
)
from deployments.advice.selectors import items
from deployments.advice.services import answers
from deployments.changes.api.drafts import respond_created
from deployments.changes.api.serializers import ChangeSerializer
from portal.api.actions import action
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_query
from portal.api.responses import REFUSALS

TAGS = ["advice"]


class AdviceView(APIView):
    @extend_schema(
        operation_id="list_advice",
        tags=TAGS,
        parameters=[AdviceQuerySerializer],
        responses=AdviceSerializer(many=True),
        description="Ways to spend less, with evidence, saving and risk; the largest saving first, "
        f"at most {items.MOST}. Those about nodes are for platform admins.",
    )
    def get(self, request: Request) -> Response:
        slug = read_query(AdviceQuerySerializer, request)["team"]
        rows = items.list_visible_to(actor_of(request), team_slug=slug)[: items.MOST]
        return Response(AdviceSerializer(rows, many=True).data)


class RequestAdviceView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="request_advice",
        tags=TAGS,
        request=None,
        responses={201: ChangeSerializer, **REFUSALS},
        description="Request the change of the advice with today's figures; it waits for its approvers. "
        "409 when the advice no longer holds.",
    )
    def post(self, request: Request, item_id: int) -> Response:
        actor = actor_of(request)
        return respond_created(actor, answers.request(actor=actor, item_id=item_id))


SnoozeView = action(
    answers.snooze,
    operation_id="snooze_advice",
    tags=TAGS,
    body=SnoozeSerializer,
    shown_by=AdviceSerializer,
    description="Hide it for some days. An idle deployment is not warned about meanwhile.",
)
DismissView = action(
    answers.dismiss,
    operation_id="dismiss_advice",
    tags=TAGS,
    body=DismissSerializer,
    shown_by=AdviceSerializer,
    description="Hide it until someone reopens it.",
)
ReopenView = action(
    answers.reopen, operation_id="reopen_advice", tags=TAGS, shown_by=AdviceSerializer
)
