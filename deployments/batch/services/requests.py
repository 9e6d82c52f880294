"""Request, cancel and resume a batch job. Workers do the rest (advance.py)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction

from deployments import rejections
from deployments.batch.domain import places, queues, reports
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import (
    GRACE,
    PLANNING_FOR,
    STOPPING_FOR,
    SUBMITTED_FOR,
    BatchState,
)
from deployments.batch.selectors import jobs
from deployments.batch.services import audit_actions, cluster_checks, limits, transitions
from deployments.models import BatchJob, ModelVersion
from deployments.registry.domain import loading
from deployments.registry.selectors import versions
from deployments.spec.domain.engines import TRITON
from deployments.states import VersionState
from fleet.clusters.selectors import clusters
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake

TASK: Final = "deployments.advance_batch"
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class BatchDraft:
    """A requested job. `input` is a file or a prefix that ends with "/"; `output` is a prefix of the team's area,
    empty for one of the job alone.

    Either may be a queue (domain/queues.py). `pods` are BatchSettings as JSON.
    """

    name: str
    model: str
    version: int
    cluster: str
    input: str
    output: str
    pods: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadDraft:
    """A draft that may be requested."""

    team: Team
    version: ModelVersion
    cluster_id: int
    input: str
    output: str
    is_queue: bool
    pods: BatchSettings
    allowed: limits.JobLimits


def read(*, actor: User, team_slug: str, draft: BatchDraft) -> ReadDraft:
    """Check a draft. Raises Invalid, and Conflict for a name or an output in use."""
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.REQUEST_CHANGE, team)
    if not _NAME.fullmatch(draft.name):
        problem = "Use 1 to 40 lowercase letters, digits and hyphens, starting with a letter."
        raise Invalid(problem, fields={"name": problem})
    version = _version(actor, team, draft)
    with rejections.as_invalid():
        pods = BatchSettings.from_json(draft.pods)
        source, target = _places(team, draft)
        queues.check_settings(source, target, pods)
    cluster_id, is_queue = cluster_id_of(draft.cluster), queues.is_queue(source)
    cluster_checks.require(team, cluster_id, pods, name=draft.name, is_queue=is_queue)
    allowed = limits.check(team, cluster_id, pods)
    _require_free(team, draft.name, target)
    return ReadDraft(team, version, cluster_id, source, target, is_queue, pods, allowed)


def request(*, actor: User, team_slug: str, draft: BatchDraft) -> BatchJob:
    """Store a job; a worker reads the input next. Raises what `read` raises."""
    valid = read(actor=actor, team_slug=team_slug, draft=draft)
    at = clock.now()
    job = BatchJob(
        team=valid.team,
        name=draft.name,
        version=valid.version,
        cluster_id=valid.cluster_id,
        requester=actor,
        created_at=at,
        state=BatchState.PLANNING,
        pods=valid.pods.to_json(),
        input=valid.input,
        output=valid.output,
        is_queue=valid.is_queue,
        cost_limit_amount=valid.allowed.amount,
        deadline_at=at + PLANNING_FOR,
        next_check_at=at,
    )
    try:
        with transaction.atomic():
            job.save(force_insert=True)
            transitions.record(actor, job, audit_actions.REQUESTED, after=job.state)
            wake(TASK, job.pk)
    except IntegrityError:
        _require_free(valid.team, draft.name, valid.output)
        raise
    return job


def cancel(*, actor: User, job_id: int, reason: str = "") -> BatchJob:
    """Cancel a job. Finished parts of the output stay. Raises Conflict if it already ends or has ended."""
    job = jobs.get_visible(actor=actor, job_id=job_id)
    policy.require(actor, Action.STOP, job.team)
    text = clean(reason) or f"{actor.display_name} canceled it."
    # What already ends has its Job removed, whatever it ends as.
    if job.state not in (BatchState.PLANNING, BatchState.SUBMITTED, BatchState.RUNNING):
        raise Conflict(f"The {job} is {job.state}, so it cannot be canceled.", code="batch_state")
    with transaction.atomic():
        if job.state == BatchState.RUNNING:
            stop(actor=actor, job=job, ends_as=BatchState.CANCELED, reason=text)
        else:
            transitions.move(
                actor=actor,
                job=job,
                to=BatchState.CANCELED,
                audited=audit_actions.CANCELED,
                reason=text,
            )
        wake(TASK, job.pk)
    return job


def resume(*, actor: User, job_id: int) -> BatchJob:
    """Start a failed job again, for the chunks that are not done. Quota and budget are checked anew."""
    job = jobs.get_visible(actor=actor, job_id=job_id)
    policy.require(actor, Action.REQUEST_CHANGE, job.team)
    if not may_resume(job):
        raise Conflict(
            f"The {job} is {job.state}; only a failed one can be resumed.", code="batch_state"
        )
    if job.total_rows is None and not job.is_queue:
        raise Conflict(
            f"The input of the {job} could not be read. Request a new one.", code="batch_state"
        )
    allowed = limits.check(job.team, job.cluster_id, BatchSettings.from_json(job.pods), without=job)
    with transaction.atomic():
        start_or_submit(actor, job, allowed, audited=audit_actions.RESUMED)
        wake(TASK, job.pk)
    return job


def may_resume(job: BatchJob) -> bool:
    """Whether the job may be resumed: a failed one, and one that drains a queue also when its time is over."""
    return job.state == BatchState.FAILED or (job.is_queue and job.state == BatchState.SUCCEEDED)


def start_or_submit(
    actor: policy.Actor, job: BatchJob, allowed: limits.JobLimits, *, audited: Any
) -> None:
    """Start the job if the budget has room for it; otherwise its approvers decide."""
    columns = {"cost_limit_amount": allowed.amount}
    if allowed.why_approval:
        transitions.move(
            actor=actor,
            job=job,
            to=BatchState.SUBMITTED,
            audited=audited,
            reason=allowed.why_approval,
            time_limit=SUBMITTED_FOR,
            columns=columns,
        )
        return
    start(actor, job, audited=audited, columns=columns)


def start(
    actor: policy.Actor,
    job: BatchJob,
    *,
    audited: Any,
    columns: Mapping[str, Any],
    reason: str = "",
) -> None:
    """Start the next attempt: another Job, with links of its own."""
    at = clock.now()
    transitions.move(
        actor=actor,
        job=job,
        to=BatchState.RUNNING,
        audited=audited,
        reason=reason,
        time_limit=BatchSettings.from_json(job.pods).time_limit + GRACE,
        columns={
            **columns,
            "attempt": job.attempt + 1,
            "started_at": job.started_at or at,
            "signed_at": None,
            "ends_as": "",
            # The error limit of a queue counts from here.
            **(
                {"drained": reports.restart_progress(job.drained, job.failed_rows)}
                if job.is_queue
                else {}
            ),
        },
    )


def stop(*, actor: policy.Actor, job: BatchJob, ends_as: BatchState, reason: str) -> None:
    transitions.move(
        actor=actor,
        job=job,
        to=BatchState.STOPPING,
        audited=audit_actions.STOPPING,
        reason=reason,
        time_limit=STOPPING_FOR,
        columns={"ends_as": ends_as},
    )


def clean(text: str, *, field: str = "reason") -> str:
    text = text.strip()
    if len(text) > _LONGEST:
        problem = f"Use at most {_LONGEST} characters."
        raise Invalid(problem, fields={field: problem})
    return text


def _version(actor: User, team: Team, draft: BatchDraft) -> ModelVersion:
    version = versions.get_version_by_number(
        actor=actor, team_slug=team.slug, name=draft.model, number=draft.version
    )
    if version.state != VersionState.READY:
        problem = f"{version.label} is {version.state}. Choose a ready version."
        raise Invalid(problem, fields={"version": problem})
    if TRITON not in loading.engines_for(version.source_uri, version.format):
        problem = (
            f"{version.label} is not served by Triton, which scores batches. Choose another one."
        )
        raise Invalid(problem, fields={"version": problem})
    return version


def _places(team: Team, draft: BatchDraft) -> tuple[str, str]:
    bucket = settings.SLIPWAY_S3_BUCKET
    output = draft.output or places.default_output(bucket, team.slug, draft.name)
    if queues.is_queue(draft.input):
        read = queues.parse_input(
            draft.input, team=team.slug, patterns=settings.SLIPWAY_BATCH_QUEUES
        )
        if queues.is_queue(output):
            return read, queues.parse_output(output, source=read)
        return read, places.uri_of(places.parse_prefix(output, bucket=bucket, team=team.slug))
    source = places.parse_input(
        draft.input, bucket=bucket, team=team.slug, patterns=settings.SLIPWAY_IMPORT_S3
    )
    target = places.parse_output(output, bucket=bucket, team=team.slug, source=source)
    return places.uri_of(source), places.uri_of(target)


def cluster_id_of(name: str) -> int:
    for cluster in clusters.list_clusters():
        if cluster.name == name:
            return cluster.id
    problem = f"There is no cluster “{name}”. Use the name of a registered one."
    raise Invalid(problem, fields={"cluster": problem})


def _require_free(team: Team, name: str, output: str) -> None:
    if BatchJob.objects.filter(team=team, name=name).exists():
        raise Conflict(
            f"{team.slug} has a batch job {name} already. Open it, or choose another name.",
            code="batch_exists",
        )
    gone = (BatchState.REJECTED, BatchState.CANCELED)
    other = BatchJob.objects.filter(output=output).exclude(state__in=gone).first()
    if other is not None:
        raise Conflict(
            f"The {other} writes to {output}. Choose another output.", code="batch_output_taken"
        )
