"""Batch jobs as tables of requests show them (changes/_request_table.html)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from django.urls import reverse

from deployments.batch.domain import descriptions
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import BatchState
from deployments.models import BatchJob


@dataclass(frozen=True, slots=True)
class BatchItem:
    job: BatchJob
    title: str
    detail: str
    approvals: str
    is_emergency: ClassVar = False
    cost_unit: ClassVar = "at most"

    @property
    def state(self) -> str:
        return self.job.state

    @property
    def path(self) -> str:
        return reverse("batch-job", args=(self.job.team.slug, self.job.name))

    @property
    def anchor(self) -> str:
        return f"batch-job-{self.job.pk}"

    @property
    def requester(self) -> str:
        return self.job.requester.display_name

    @property
    def requested_at(self) -> datetime:
        return self.job.created_at

    @property
    def cost(self) -> Decimal | None:
        return self.job.cost_limit_amount


def item_of(job: BatchJob) -> BatchItem:
    settings = BatchSettings.from_json(job.pods)
    where = (job.team.slug, job.cluster.name)
    is_open = job.state == BatchState.SUBMITTED
    return BatchItem(
        job=job,
        title=descriptions.title(version=job.version.label, name=job.name),
        detail=" · ".join((*where, *descriptions.details(settings, rows=job.total_rows))),
        approvals=descriptions.NEEDED if is_open else "",
    )


def items_of(rows: Iterable[BatchJob]) -> list[BatchItem]:
    return [item_of(job) for job in rows]
