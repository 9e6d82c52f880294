"""Batch jobs by REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import BatchState
from deployments.batch.selectors import jobs, waiting
from deployments.batch.selectors.jobs import JobProgress, QueueProgress
from deployments.batch.services import decisions, estimates, requests
from deployments.batch.services.requests import BatchDraft
from deployments.models import BatchJob
from portal.accounts.models import User
from portal.api.actions import action
from portal.api.base_serializer import Serializer, choice_of, dollars
from portal.api.definition_serializers import DefinedSerializer, serializer_of
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS

TAGS: Final = ["batch"]
_OF_DRAFT: Final = ("name", "model", "version", "cluster", "input", "output")


class BatchFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True)
    state = choice_of(BatchState, default="", allow_blank=True)
    waiting_for_me = serializers.BooleanField(
        default=False,
        help_text="Limit the list to jobs that you may approve or reject, oldest first.",
    )


class NewBatchJobSerializer(DefinedSerializer):
    definition = BatchSettings
    team = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=40, help_text="unique in the team")
    model = serializers.CharField(max_length=40)
    version = serializers.IntegerField(min_value=1, help_text="number of a ready version")
    cluster = serializers.CharField(max_length=40)
    input = serializers.CharField(
        max_length=800,
        help_text='s3://bucket/rows.jsonl, or a prefix that ends with "/"; each line is one request of the Open '
        "Inference Protocol. Or a queue that is drained: redis://host:port/STREAM, the URL of a queue of SQS, or kafka://host:port/TOPIC",
    )
    output = serializers.CharField(
        max_length=800,
        default="",
        allow_blank=True,
        help_text="an empty prefix below the team's: s3://bucket/batch/TEAM/NAME/; of a stream also another stream of its server. Left out: scores/NAME/ below the team's",
    )


class BatchJobSerializer(Serializer):
    """A batch job, over files of rows or over the messages of a queue."""

    id = serializers.IntegerField()
    team = serializers.CharField(source="team.slug")
    name = serializers.CharField()
    version = serializers.CharField(source="version.label")
    cluster = serializers.CharField(source="cluster.name")
    state = choice_of(BatchState)
    state_reason = serializers.CharField()
    input = serializers.CharField()
    output = serializers.CharField()
    settings = serializer_of(BatchSettings)(source="pods")
    requester = serializers.CharField(source="requester.username")
    is_queue = serializers.BooleanField(help_text="it drains a queue until its deadline")
    total_rows = serializers.IntegerField(
        allow_null=True, help_text="Null for a queue, and until the input was read."
    )
    done_rows = serializers.IntegerField()
    failed_rows = serializers.IntegerField(help_text="Rows that are done and have no answer.")
    cost_limit = dollars(
        source="cost_limit_amount", allow_null=True, help_text="until the deadline; null: not known"
    )
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class BatchQueueSerializer(Serializer):
    """The progress of a job that drains a queue, in messages."""

    waiting = serializers.IntegerField(
        allow_null=True, help_text="messages without an answer at waiting_at; null: not known"
    )
    waiting_at = serializers.DateTimeField(allow_null=True)
    answered = serializers.IntegerField()
    dead_letters = serializers.IntegerField()
    retried = serializers.IntegerField(help_text="tries after the first")
    group = serializers.CharField(help_text="the consumer group; empty: SQS has none")
    dead_letters_in = serializers.CharField(help_text="the stream, queue or topic of dead letters")


class BatchJobDetailsSerializer(BatchJobSerializer):
    """A batch job with its progress and costs."""

    detail = serializers.CharField(help_text="Current state of its workers.")
    first_error = serializers.CharField()
    queue = BatchQueueSerializer(allow_null=True, help_text="Null for a job over files.")
    chunks = serializers.IntegerField(source="progress.chunks")
    done_chunks = serializers.IntegerField(source="progress.done_chunks")
    spent = dollars(source="progress.spent_amount", allow_null=True, help_text="Null if unknown.")
    forecast = dollars(
        source="progress.forecast_amount", allow_null=True, help_text="at the end, at this rate"
    )
    done_at = serializers.DateTimeField(
        source="progress.done_at", allow_null=True, help_text="at this rate"
    )
    why_not_decide = serializers.CharField(help_text="Empty where you may approve or reject it.")


class BatchPriceSerializer(Serializer):
    """The price of all workers in US dollars; null means unknown."""

    per_hour = dollars(
        source="usd_per_hour_amount", allow_null=True, help_text="all workers; null: not known"
    )
    cost_limit = dollars(source="amount", allow_null=True, help_text="until the deadline")


class BatchEstimateSerializer(Serializer):
    """The estimate of a batch job before it starts."""

    per_hour = dollars(source="price.usd_per_hour_amount", allow_null=True)
    cost_limit = dollars(source="price.amount", allow_null=True, help_text="until the deadline")
    spot = BatchPriceSerializer(help_text="the same workers on spot nodes")
    on_demand = BatchPriceSerializer(help_text="the same workers on on-demand nodes")
    fits_now = serializers.BooleanField(
        source="capacity.ok", allow_null=True, help_text="false, or null: it waits for nodes"
    )
    capacity = serializers.CharField(source="capacity.detail")
    why_approval = serializers.CharField(help_text="Empty if it starts without a decision.")


class BatchReasonSerializer(Serializer):
    reason = serializers.CharField(required=False, allow_blank=True, max_length=2000)


class BatchCommentSerializer(Serializer):
    comment = serializers.CharField(required=False, allow_blank=True, max_length=2000)


@dataclass(frozen=True, slots=True)
class Details:
    job: BatchJob
    progress: JobProgress
    queue: QueueProgress | None
    why_not_decide: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.job, name)


def _details(actor: User, job: BatchJob) -> Details:
    return Details(
        job, jobs.progress_of(job), jobs.queue_of(job), waiting.why_not_decide(actor, job)
    )


def _draft_of(body: dict[str, Any]) -> BatchDraft:
    of_draft = {name: body.pop(name) for name in _OF_DRAFT}
    return BatchDraft(**of_draft, pods=body)


class BatchJobsView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = BatchJobSerializer

    @extend_schema(
        operation_id="list_batch_jobs",
        tags=TAGS,
        parameters=[BatchFilterSerializer],
        responses={200: BatchJobSerializer(many=True), 422: PROBLEM},
        description="List the jobs of your teams, newest first.",
    )
    def get(self, request: Request) -> Response:
        query = read_query(BatchFilterSerializer, request)
        rows = jobs.list_visible_to(
            actor_of(request), team_slug=query["team"], state=query["state"]
        )
        if query["waiting_for_me"]:
            rows = waiting.limit_to_waiting(rows, actor_of(request))
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(BatchJobSerializer(page, many=True).data)

    @extend_schema(
        operation_id="request_batch_job",
        tags=TAGS,
        request=NewBatchJobSerializer,
        responses={201: BatchJobDetailsSerializer, **REFUSALS},
        description="Score each row of the input with a model version, or drain a queue until the deadline. It starts when the input was read, or when a "
        "lead approves it, where the budget has no room for its cost until the deadline.",
    )
    def post(self, request: Request) -> Response:
        actor, body = actor_of(request), dict(read_body(NewBatchJobSerializer, request))
        team_slug = body.pop("team")
        job = requests.request(actor=actor, team_slug=team_slug, draft=_draft_of(body))
        return Response(BatchJobDetailsSerializer(_details(actor, job)).data, status=201)


class CheckView(APIView):
    @extend_schema(
        operation_id="check_batch_job",
        tags=TAGS,
        request=NewBatchJobSerializer,
        responses={200: BatchEstimateSerializer, **REFUSALS},
        description="A dry run: what the request would be refused for, or what it would cost and whether its workers "
        "fit now. Nothing is stored, and the input is not read.",
    )
    def post(self, request: Request) -> Response:
        actor, body = actor_of(request), dict(read_body(NewBatchJobSerializer, request))
        team_slug = body.pop("team")
        estimate = estimates.check(actor=actor, team_slug=team_slug, draft=_draft_of(body))
        return Response(BatchEstimateSerializer(estimate).data)


class BatchJobView(APIView):
    @extend_schema(
        operation_id="get_batch_job",
        tags=TAGS,
        responses={200: BatchJobDetailsSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, job_id: int) -> Response:
        actor = actor_of(request)
        job = jobs.get_visible(actor=actor, job_id=job_id)
        return Response(BatchJobDetailsSerializer(_details(actor, job)).data)


def _action(run: Any, name: str, body: Any, description: str) -> type[APIView]:
    return action(
        run,
        operation_id=f"{name}_batch_job",
        tags=TAGS,
        body=body,
        shown_by=BatchJobDetailsSerializer,
        show=_details,
        description=description,
    )


CancelView = _action(
    requests.cancel, "cancel", BatchReasonSerializer, "Finished parts of the output stay."
)
ResumeView = _action(
    requests.resume, "resume", None, "Start a failed one again, for the rows that are not done."
)
ApproveView = _action(
    decisions.approve, "approve", BatchCommentSerializer, "Leads only, not the requester."
)
RejectView = _action(
    decisions.reject, "reject", BatchCommentSerializer, "Leads only; the comment is required."
)

_ONE: Final = "batch-jobs/<int:job_id>"
urlpatterns: list[URLPattern] = [
    path("batch-jobs", BatchJobsView.as_view(), name="batch-jobs"),
    path("batch-jobs/check", CheckView.as_view(), name="check-batch-job"),
    path(_ONE, BatchJobView.as_view(), name="batch-job"),
    path(f"{_ONE}/cancel", CancelView.as_view(), name="cancel-batch-job"),
    path(f"{_ONE}/resume", ResumeView.as_view(), name="resume-batch-job"),
    path(f"{_ONE}/approve", ApproveView.as_view(), name="approve-batch-job"),
    path(f"{_ONE}/reject", RejectView.as_view(), name="reject-batch-job"),
]
