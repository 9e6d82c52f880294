"""Requests of every kind that wait for the reader, by REST."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.batch.selectors import waiting as batch
from deployments.batch.web import items as batch_items
from deployments.changes.selectors import changes
from deployments.changes.web import items
from fleet.actions.selectors import actions
from fleet.actions.services import notifications
from portal.accounts.models import User
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_query

KINDS: Final = ("deployment", "pipeline", "batch-job", "fleet-action")


@dataclass(frozen=True, slots=True)
class Waiting:
    kind: str
    id: int
    team: str
    title: str
    detail: str
    requester: str
    requested_at: datetime
    path: str


class WaitingFilterSerializer(Serializer):
    kind = serializers.ChoiceField(choices=KINDS, default="", allow_blank=True)
    team = serializers.CharField(default="", allow_blank=True)


class WaitingRequestSerializer(Serializer):
    kind = serializers.ChoiceField(
        choices=KINDS, help_text="of deployments and pipelines: a change request"
    )
    id = serializers.IntegerField(
        help_text="of the change request, the batch job or the fleet action"
    )
    team = serializers.CharField(help_text="empty for fleet actions")
    title = serializers.CharField()
    detail = serializers.CharField()
    requester = serializers.CharField(help_text="username")
    requested_at = serializers.DateTimeField()
    path = serializers.CharField(help_text="of the page where it is decided on")


class ApprovalsView(APIView):
    @extend_schema(
        operation_id="list_approvals",
        tags=["approvals"],
        parameters=[WaitingFilterSerializer],
        responses=WaitingRequestSerializer(many=True),
        description="What you may approve or reject now, the oldest first: changes of deployments and pipelines, batch "
        "jobs above the budget, and fleet actions.",
    )
    def get(self, request: Request) -> Response:
        query = read_query(WaitingFilterSerializer, request)
        rows = [
            row
            for row in _waiting(actor_of(request))
            if query["kind"] in ("", row.kind) and query["team"] in ("", row.team)
        ]
        rows.sort(key=lambda row: row.requested_at)
        return Response(WaitingRequestSerializer(rows, many=True).data)


def _waiting(user: User) -> Iterator[Waiting]:
    for change in items.items_of(changes.of_ids(changes.waiting_for(user))):
        kind = "pipeline" if change.change.pipeline_id else "deployment"
        row = change.change
        yield _row(kind, row.pk, row.team.slug, row.requester.username, change)
    for item in batch_items.items_of(batch.list_waiting_for(user)):
        job = item.job
        yield _row("batch-job", job.pk, job.team.slug, job.requester.username, item)
    for action in actions.list_waiting_for(user):
        yield Waiting(
            kind="fleet-action",
            id=action.pk,
            team="",
            title=notifications.title_of(action),
            detail=action.comment,
            requester=action.requester.username,
            requested_at=action.created_at,
            path=notifications.path_of(action),
        )


def _row(
    kind: str,
    row_id: int,
    team: str,
    requester: str,
    item: items.ChangeItem | batch_items.BatchItem,
) -> Waiting:
    return Waiting(
        kind=kind,
        id=row_id,
        team=team,
        title=item.title,
        detail=item.detail,
        requester=requester,
        requested_at=item.requested_at,
        path=item.path,
    )


urlpatterns: list[URLPattern] = [path("approvals", ApprovalsView.as_view(), name="approvals")]
