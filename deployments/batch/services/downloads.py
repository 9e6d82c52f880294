"""Addresses of finished parts of the output, for people: each is good for one object and some minutes."""

from __future__ import annotations

from typing import Final

from django.db.models import QuerySet

from deployments.batch.domain import places
from deployments.batch.gateways.batch_store import BatchStore
from deployments.batch.selectors import jobs
from deployments.models import BatchChunk, BatchJob
from deployments.registry.services.store_errors import translate_errors
from portal.accounts.models import User
from portal.core.errors import NotFound

SECONDS: Final = 900


def list_parts(*, actor: User, job_id: int) -> QuerySet[BatchChunk]:
    """Return finished parts, in the order of their rows."""
    job = jobs.get_visible(actor=actor, job_id=job_id)
    return parts_of(job)


def parts_of(job: BatchJob) -> QuerySet[BatchChunk]:
    return job.chunks.exclude(done_at=None).order_by("number")


def url_of(part: BatchChunk) -> str:
    """Sign an address for GET, which saves the part under the names of job and part."""
    job = part.job
    key = places.part_key(job.output, part.number)
    with translate_errors():
        return BatchStore().url_to_download(
            key, filename=f"{job.name}-{part.number:05d}.jsonl", seconds=SECONDS
        )


def part_url(*, actor: User, team_slug: str, name: str, number: int) -> str:
    """Sign the address of a part. Raises NotFound if it is not finished."""
    job = jobs.get_visible_by_name(actor=actor, team_slug=team_slug, name=name)
    part = parts_of(job).filter(number=number).first()
    if part is None:
        raise NotFound(f"Part {number} of the {job} is not finished, or there is none.")
    part.job = job
    return url_of(part)
