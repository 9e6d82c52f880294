"""Requests of every kind that wait for the reader, by REST."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.batch.selectors import jobs
from deployments.batch.selectors import waiting as batch
from deployments.batch.web import items as batch_items
from deployments.batch.web.items import BatchItem
from deployments.changes.selectors import changes
from deployments.changes.web import items
from deployments.changes.web.items import ChangeItem
from fleet.actions.selectors import actions
from fleet.actions.services import notifications
from portal.accounts.models import User
from portal.api import pagination
from portal.api.base_serializer import PageSerializer, Serializer
from portal.api.requests import actor_of, read_query

KINDS: Final = ("deployment", "pipeline", "batch-job", "fleet-action")


_MOST_ROWS: Final = 100


@dataclass(frozen=True, slots=True)
class Waiting:
    kind: str
    id: int
    team: str
    requested_at: datetime


class WaitingFilterSerializer(Serializer):
    kind = serializers.ChoiceField(choices=KINDS, default="", allow_blank=True)
    team = serializers.CharField(default="", allow_blank=True)


class WaitingRequestSerializer(Serializer):
    """A request that you may approve or reject now."""

    kind = serializers.ChoiceField(
        choices=KINDS,
        help_text="Kind of the request; deployments and pipelines have change requests.",
    )
    id = serializers.IntegerField(
        help_text="ID of the change request, the batch job or the fleet action."
    )
    team = serializers.CharField(help_text="Empty for fleet actions.")
    title = serializers.CharField()
    detail = serializers.CharField()
    requester = serializers.CharField(help_text="username")
    requested_at = serializers.DateTimeField()
    path = serializers.CharField(help_text="Path of the page where it is decided.")


class ApprovalsSerializer(Serializer):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = WaitingRequestSerializer(many=True)


class ApprovalsView(APIView):
    @extend_schema(
        operation_id="list_approvals",
        tags=["approvals"],
        parameters=[WaitingFilterSerializer, PageSerializer],
        responses=ApprovalsSerializer,
        description="What you may approve or reject now, the oldest first: changes of deployments and pipelines, batch "
        f"jobs above the budget, and fleet actions. At most {_MOST_ROWS} a page.",
    )
    def get(self, request: Request) -> Response:
        page = pagination.read_offset(request, most=_MOST_ROWS)
        query = read_query(WaitingFilterSerializer, request)
        user = actor_of(request)
        rows = [
            row
            for row in _waiting(user)
            if query["kind"] in ("", row.kind) and query["team"] in ("", row.team)
        ]
        rows.sort(key=lambda row: row.requested_at)
        shown = rows[page.offset : page.offset + page.limit]
        answer = {**page.links(len(rows)), "results": _described(shown)}
        return Response(ApprovalsSerializer(answer).data)


def _waiting(user: User) -> Iterator[Waiting]:
    """Yield all requests that wait for the user, with what they are sorted and filtered by."""
    for pk, pipeline, team, at in changes.ages_of(changes.waiting_for(user)):
        yield Waiting("pipeline" if pipeline else "deployment", pk, team, at)
    for pk, team, at in batch.list_waiting_for(user).values_list("pk", "team__slug", "created_at"):
        yield Waiting("batch-job", pk, team, at)
    for pk, at in actions.list_waiting_for(user).values_list("pk", "created_at"):
        yield Waiting("fleet-action", pk, "", at)


def _described(rows: Sequence[Waiting]) -> list[dict[str, Any]]:
    ids: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for row in rows:
        ids[row.kind].append(row.id)
    described: dict[tuple[str, int], dict[str, Any]] = {}
    for item in items.items_of(changes.list_by_ids([*ids["deployment"], *ids["pipeline"]])):
        kind = "pipeline" if item.change.pipeline_id else "deployment"
        described[kind, item.change.pk] = _text_of(item, item.change.requester)
    for job in batch_items.items_of(jobs.list_by_ids(ids["batch-job"])):
        described["batch-job", job.job.pk] = _text_of(job, job.job.requester)
    for action in actions.list_all().filter(pk__in=ids["fleet-action"]):
        described["fleet-action", action.pk] = {
            "title": notifications.title_of(action),
            "detail": action.comment,
            "requester": action.requester.username,
            "path": notifications.path_of(action),
        }
    return [asdict(row) | described[row.kind, row.id] for row in rows]


def _text_of(item: ChangeItem | BatchItem, requester: User) -> dict[str, Any]:
    return {
        "title": item.title,
        "detail": item.detail,
        "requester": requester.username,
        "path": item.path,
    }


urlpatterns: list[URLPattern] = [path("approvals", ApprovalsView.as_view(), name="approvals")]
