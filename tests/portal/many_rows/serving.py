"""A deployment with a long life: revisions, events, keys, targets, readings; and many pipelines and batch jobs."""

from __future__ import annotations

from datetime import timedelta

from deployments.models import (
    BatchChunk,
    BatchJob,
    BatchUpload,
    CallerKey,
    Consumer,
    Deployment,
    DeploymentEvent,
    DeploymentHealth,
    DeploymentPreset,
    HealthRecord,
    KeysAtGateway,
    KeyTokens,
    Pipeline,
    PipelineKey,
    QualityObservation,
    RolloutTemplate,
    SafeguardRequest,
    ServiceTarget,
    TargetCount,
)
from fleet.models import CallerHour
from portal.accounts.models import Team
from portal.core import clock
from tests.portal.api.full_world import FullWorld
from tests.portal.many_rows.copies import copies, digest


def fill(full: FullWorld, scale: float) -> None:
    deployment = full.deployment
    deployment.refresh_from_db()
    stable = deployment.stable_revision
    assert stable is not None
    copies(stable, 100 * scale, number=lambda n: 100 + n)
    if not Deployment.objects.exclude(pk=deployment.pk).exists():
        copies(deployment, 100 * scale, name=lambda n: f"d-{n}")
    # What others serve was observed as this one was.
    Deployment.objects.exclude(pk=deployment.pk).filter(observed={}).update(
        observed=deployment.observed,
        observed_at=clock.now(),
        observed_generation=1,
        first_ready_at=deployment.first_ready_at,
    )
    event = DeploymentEvent.objects.filter(deployment=deployment).order_by("-pk")[0]
    copies(event, 2000 * scale, at=lambda n: event.at - timedelta(minutes=n))
    _callers(full, scale)
    _targets(full, scale)
    _health(full, scale, stable.pk)
    _others(full, scale)


def _callers(full: FullWorld, scale: float) -> None:
    key = CallerKey.objects.select_related("consumer").get(pk=full.names["key_id"])
    consumers = copies(key.consumer, 100 * scale, name=lambda n: f"service-{n}")
    keys = copies(
        key,
        2 * len(consumers),
        consumer_id=lambda n: consumers[n % len(consumers)].pk,
        sha256=lambda n: digest("key", n),
        ended_at=lambda n: clock.now() if n % 2 else None,
        sealed=lambda n: "" if n % 2 else key.sealed,
    )
    minute = clock.now().replace(second=0, microsecond=0)
    hour, day = minute.replace(minute=0), minute.replace(minute=0, hour=0)
    KeyTokens.objects.bulk_create(
        KeyTokens(key=key, minute=minute, minute_tokens=100, day=day, day_tokens=9_000)
        for key in keys
    )
    others = Deployment.objects.exclude(keys_at_gateway__isnull=False)
    KeysAtGateway.objects.bulk_create(
        KeysAtGateway(deployment=row, changed_at=minute, written_at=minute, written_generation=1)
        for row in others
    )
    # Of the hundred keys these send something in each hour.
    senders = Consumer.objects.filter(team=full.world.team).values_list("name", flat=True)
    names = ["", *senders[: max(2, round(20 * scale))]]
    CallerHour.objects.bulk_create(
        (
            CallerHour(
                team_slug=full.world.team.slug,
                deployment=full.deployment.name,
                caller=name,
                hour=hour - timedelta(hours=back),
                requests=100 if name else 0,
                observed_ms=0 if name else 3_600_000,
            )
            for back in range(1, 1 + round(720 * scale))
            for name in names
        ),
        batch_size=2000,
    )


def _targets(full: FullWorld, scale: float) -> None:
    target = ServiceTarget.objects.get(deployment=full.deployment)
    targets = [target]
    metrics = ("p95", "first_token")
    targets += copies(
        target, len(metrics), metric=lambda n: metrics[n - 1], threshold_ms=lambda _: 200
    )
    now = clock.now().replace(second=0, microsecond=0)
    for row in targets:
        for seconds, number in ((60, 420), (3600, 7 * 24)):
            TargetCount.objects.bulk_create(
                TargetCount(
                    target=row,
                    seconds=seconds,
                    start=now.replace(minute=0) - timedelta(seconds=seconds * back),
                    total=1000,
                    bad=back % 7,
                    known_minutes=seconds // 60,
                )
                for back in range(1, max(2, round(number * scale)))
            )
    ServiceTarget.objects.filter(deployment=full.deployment).update(counted_until=now)
    rows = Deployment.objects.exclude(pk=full.deployment.pk).values_list("pk", flat=True)
    copies(target, len(rows[:2000]), deployment_id=lambda n: rows[n - 1]) if rows else None


def _health(full: FullWorld, scale: float, revision: int) -> None:
    now = clock.now()
    record = HealthRecord.objects.create(
        deployment=full.deployment,
        at=now,
        kind="baseline",
        subject="latency",
        verdict="failed",
        message="1.5 times the same hour of seven days",
        revision_number=1,
    )
    copies(record, 500 * scale, at=lambda n: now - timedelta(hours=n))
    health, _ = DeploymentHealth.objects.get_or_create(deployment=full.deployment)
    deployments = list(Deployment.objects.filter(health=None).values_list("pk", flat=True))
    if deployments:
        copies(health, len(deployments), deployment_id=lambda n: deployments[n - 1])
    others = Deployment.objects.exclude(pk=full.deployment.pk).filter(safeguard_requests=None)
    SafeguardRequest.objects.bulk_create(
        SafeguardRequest(
            deployment=other, safeguard="health", requester=full.world.member, created_at=now
        )
        for other in others[: max(2, round(300 * scale))]
    )
    row = QualityObservation.objects.create(
        revision_id=revision,
        kind="label",
        n=100,
        counts={"yes": 60, "no": 40},
        posted_by=full.world.member,
        at=now,
    )
    copies(row, 1000 * scale, at=lambda n: now - timedelta(minutes=n))


def _others(full: FullWorld, scale: float) -> None:
    teams = list(Team.objects.order_by("pk").values_list("pk", flat=True))
    own = full.world.team.pk
    template = RolloutTemplate.objects.get(pk=full.names["template_id"])
    copies(template, 60 * scale, name=lambda n: f"template-{n}")
    preset = DeploymentPreset.objects.get(pk=full.names["preset_id"])
    copies(preset, 60 * scale, name=lambda n: f"preset-{n}")
    pipeline = Pipeline.objects.get(pk=full.names["pipeline_id"])
    copies(
        pipeline,
        300 * scale,
        team_id=lambda n: own if n % 2 else teams[n % len(teams)],
        name=lambda n: f"pipeline-{n}",
        namespace=lambda n: f"ns-{n}",
    )
    now = clock.now()
    PipelineKey.objects.bulk_create(
        PipelineKey(
            pipeline=pipeline, created_at=now, written_at=now, replaced_at=now, ended_at=now
        )
        for _ in range(max(2, round(60 * scale)))
    )
    job = BatchJob.objects.get(pk=full.names["job_id"])
    copies(
        job,
        500 * scale,
        team_id=lambda n: own if n % 2 else teams[n % len(teams)],
        name=lambda n: f"job-{n}",
        output=lambda n: f"{job.output}{n}/",
        state=lambda n: ("done", "failed", "submitted", "running")[n % 4],
    )
    upload = BatchUpload.objects.get(pk=full.names["upload_id"])
    copies(upload, 300 * scale, token=lambda n: digest("upload", n)[:32])
    BatchChunk.objects.bulk_create(
        BatchChunk(
            job=job,
            number=n,
            file=0,
            start=100 * n,
            end=100 * n + 100,
            rows=10,
            first_row=10 * n + 1,
            done_at=clock.now() if n % 2 else None,
        )
        for n in range(round(5000 * scale))
    )
