"""The rows of 0.2.0, as today's code reads them. `from_0_2_0` converts their JSON."""

from django.db import migrations

from deployments.migrations.from_0_2_0 import requests, rollouts, search, specs, versions

OPEN_PHASES = ("preparing", "running", "paused", "promoting", "aborting")
GIVEN = (
    "user_id",
    "is_approved",
    "as_role",
    "stands_for_id",
    "is_emergency",
    "expires_at",
    "comment",
    "evidence_hash",
    "at",
    "void_reason",
)


def convert_versions(apps, schema_editor):
    files = apps.get_model("deployments", "ArtifactFile").objects
    for version in apps.get_model("deployments", "ModelVersion").objects.order_by("pk").iterator():
        if version.key:
            version.upload_prefix, path = versions.split_key(version.key)
            files.create(
                version=version,
                path=path,
                size_bytes=version.size_bytes or version.declared_size_bytes,
                part_size_bytes=version.part_size_bytes,
                upload_id=version.upload_id,
                s3_version_id=version.s3_version_id,
                declared_sha256=version.declared_sha256,
                sha256=version.sha256,
            )
        is_reference = bool(version.source_uri)
        version.metadata = versions.convert_metadata(version.metadata, is_reference=is_reference)
        version.declared = versions.convert_declared(version.declared)
        version.former = versions.convert_former(version.former)
        version.release = read_release(apps, version)
        version.save(
            update_fields=["upload_prefix", "metadata", "declared", "former", "release"]
        )
        search.write(apps, schema_editor, version)


def read_release(apps, version):
    """Read who released the version from the audit trail: 0.2.0 had it nowhere else. What the scanners had found
    then is not known, so that the next scan asks for another release if it finds something.
    """
    if version.state != "ready" or version.deadline_at is None:
        return {}
    events = apps.get_model("audit", "AuditEvent").objects.filter(
        action="version.released", object_id=str(version.pk)
    )
    event = events.order_by("-pk").first()
    return {
        "by": event.actor_name if event else "",
        "reason": event.reason if event else "",
        "until": version.deadline_at.isoformat(),
        "findings": [],
    }


def convert_deployments(apps, schema_editor):
    events = apps.get_model("deployments", "DeploymentEvent").objects
    for revision in apps.get_model("deployments", "Revision").objects.order_by("pk").iterator():
        if images := specs.removed_images(revision.spec):
            events.create(
                deployment_id=revision.deployment_id,
                at=revision.created_at,
                kind="upgrade",
                message=f"From 0.3.0 on r{revision.number} runs without {' and '.join(images)}: images of transformers "
                "and explainers are no longer a setting.",
                revision_number=revision.number,
            )
        revision.spec = specs.convert_spec(revision.spec)
        revision.save(update_fields=["spec"])
    for deployment in apps.get_model("deployments", "Deployment").objects.order_by("pk").iterator():
        deployment.scale = specs.convert_scale(deployment.scale)
        deployment.drift = requests.convert_drift(deployment.drift)
        deployment.save(update_fields=["scale", "drift"])


def convert_changes(apps, schema_editor):
    changes = apps.get_model("deployments", "ChangeRequest").objects
    for change in changes.select_related("deployment").order_by("pk").iterator():
        change.team_id = change.deployment.team_id
        change.scale = specs.convert_scale(change.scale)
        change.decided = requests.convert_decided(change.decided)
        if change.steps:
            change.plan = rollouts.convert_plan(change.plan)
        change.save(update_fields=["team", "scale", "decided", "plan"])


def convert_rollouts(apps, schema_editor):
    """The tests of a step that runs begin anew: other statistics judge it."""
    for rollout in apps.get_model("deployments", "Rollout").objects.order_by("pk").iterator():
        rollout.plan = rollouts.convert_plan(rollout.plan)
        rollout.observed = rollouts.convert_observation(rollout.observed)
        rollout.evidence = rollouts.convert_results(rollout.evidence)
        if rollout.phase in OPEN_PHASES:
            rollout.tests = {}
        rollout.save(update_fields=["plan", "observed", "evidence", "tests"])
    for verdict in apps.get_model("deployments", "RolloutVerdict").objects.iterator():
        verdict.guards = rollouts.convert_results(verdict.guards)
        verdict.save(update_fields=["guards"])
    for event in apps.get_model("deployments", "RolloutEvent").objects.exclude(data={}).iterator():
        event.data = rollouts.convert_event(event.data)
        event.save(update_fields=["data"])
    for template in apps.get_model("deployments", "RolloutTemplate").objects.iterator():
        template.plan = rollouts.convert_plan(template.plan)
        template.save(update_fields=["plan"])
    apps.get_model("deployments", "PrometheusReading").objects.update(step="", state={})
    for result in apps.get_model("deployments", "GoldenResult").objects.iterator():
        result.against_expected = requests.convert_differences(result.against_expected)
        result.against_stable = requests.convert_differences(result.against_stable)
        result.save(update_fields=["against_expected", "against_stable"])


def convert_pipelines(apps, schema_editor):
    """Requests about pipelines and their approvals had tables of their own."""
    changes = apps.get_model("deployments", "ChangeRequest").objects
    approvals = apps.get_model("deployments", "Approval").objects
    for pipeline in apps.get_model("deployments", "Pipeline").objects.order_by("pk").iterator():
        pipeline.observed = requests.convert_observed_pipeline(pipeline.observed)
        if pipeline.state == "ready":
            pipeline.first_ready_at = pipeline.observed_at
        pipeline.save(update_fields=["observed", "first_ready_at"])
    old_changes = apps.get_model("deployments", "PipelineChange").objects
    for old in old_changes.select_related("pipeline").order_by("created_at", "pk").iterator():
        change = changes.create(
            team_id=old.pipeline.team_id,
            pipeline_id=old.pipeline_id,
            kind=old.kind,
            state=old.state,
            state_reason=old.state_reason,
            requester_id=old.requester_id,
            comment=old.comment,
            pipeline_spec=old.spec,
            required=old.required,
            evidence_hash=old.evidence_hash,
            created_at=old.created_at,
            submitted_at=old.created_at,
            deadline_at=old.deadline_at,
            finished_at=old.finished_at,
            next_check_at=old.deadline_at if old.finished_at is None else None,
        )
        for given in old.approvals.order_by("pk"):
            approvals.create(change=change, **{name: getattr(given, name) for name in GIVEN})


def copy_synthetic_requests(apps, schema_editor):
    synthetic = apps.get_model("deployments", "SyntheticRequest")
    own = apps.get_model("deployments", "OwnRequest").objects.order_by("pk")
    synthetic.objects.bulk_create(
        (synthetic(revision_id=one.revision_id, at=one.at) for one in own.iterator()),
        batch_size=1000,
    )


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [
        ("deployments", "0003_upgrade_from_0_2_0"),
        ("audit", "0003_upgrade_from_0_2_0"),
    ]
    operations = [
        migrations.RunPython(convert, migrations.RunPython.noop)
        for convert in (
            convert_versions,
            convert_deployments,
            convert_changes,
            convert_rollouts,
            convert_pipelines,
            copy_synthetic_requests,
        )
    ]
