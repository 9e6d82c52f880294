"""A database of 0.2.0, with rows in every table that it had, goes on with this version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client

from deployments.changes.selectors import evidence
from deployments.changes.services import decisions
from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.delivery.services import reconcile
from deployments.manifests.selectors import rendered
from deployments.models import (
    ApprovalRule,
    ArtifactFile,
    ChangeRequest,
    Deployment,
    DeploymentEvent,
    EmbeddingReference,
    EmergencyReview,
    GitDelivery,
    GitExport,
    GoldenResult,
    GoldenRun,
    ModelVersion,
    Pipeline,
    QualityObservation,
    Revision,
    Rollout,
    RolloutTemplate,
    RolloutVerdict,
    SyntheticRequest,
    VersionDocument,
    VersionLabel,
    VersionMetric,
)
from deployments.pipelines.domain.observed import ObservedPipeline
from deployments.plans.domain import rollout_plan
from deployments.registry.gateways import object_store
from deployments.registry.services import search_index
from deployments.rollouts.services import reconcile as rollout_reconcile
from deployments.spec.domain import serving_spec
from fleet.models import (
    InstancePrice,
    LedgerDay,
    LedgerFourHours,
    LedgerMonth,
    LedgerRow,
    LedgerTeamDay,
)
from portal import settings as portal_settings
from portal.accounts.models import ApiToken, Delegation, Membership, Team, User
from portal.audit import sealing, verification
from portal.audit.models import AuditEvent, ChainLink
from portal.core.errors import Conflict
from portal.notifications import vault
from portal.notifications.models import Channel, DecisionLink, Notice
from tests.deployments.memory_store import MemoryStore
from tests.deployments.recording_cluster import RecordingCluster
from tests.deployments.world import connect
from tests.portal.doctor.conftest import Doctor, doctor, failing
from tests.portal.install.released_database import Upgraded, count_rows, upgraded_database

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="the dump is of PostgreSQL"),
]
__all__ = ["doctor"]
# When the last row was written; the token is of a person.
AT = datetime(2026, 11, 20, 9, 3, tzinfo=UTC)
TOKEN = "slp_" + "member-of-0-2-0-" * 2


@pytest.fixture(scope="module")
def upgraded(django_db_setup: None, django_db_blocker: Any) -> Iterator[Upgraded]:
    with django_db_blocker.unblock(), upgraded_database() as upgraded:
        yield upgraded


@pytest.fixture(autouse=True)
def _then(upgraded: Upgraded, db: None) -> Iterator[None]:
    cache.clear()
    with time_machine.travel(AT, tick=False):
        yield
    cache.clear()


@pytest.fixture
def lead() -> Client:
    client = Client(raise_request_exception=True)
    client.force_login(User.objects.get(username="lead"))
    return client


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> RecordingCluster:
    cluster, store = RecordingCluster(), MemoryStore()
    connect(cluster, monkeypatch)
    monkeypatch.setattr(object_store, "store", lambda: store)
    for version in ModelVersion.objects.filter(state="ready", source_uri=""):
        store.lay_out(version)
    return cluster


def test_the_dump_has_rows_in_every_table(upgraded: Upgraded) -> None:
    assert {table for table, count in upgraded.rows.items() if not count} == set()
    assert len(upgraded.rows) == 59


def test_no_row_is_lost(upgraded: Upgraded) -> None:
    now = count_rows()
    moved = {
        "deployments_pipelinechange": "deployments_changerequest",
        "deployments_pipelineapproval": "deployments_approval",
        "deployments_ownrequest": "deployments_syntheticrequest",
    }
    # Written by Django after each migration.
    written = {"auth_permission", "django_content_type", "django_migrations"}

    expected = {table: count for table, count in upgraded.rows.items() if table not in written}
    for old, new in moved.items():
        expected[new] = expected.get(new, 0) + expected.pop(old)
        assert old not in now
    # The event that tells of images which are no setting any more.
    expected["deployments_deploymentevent"] += 1

    assert {table: now[table] for table in expected} == expected


def test_it_ends_in_the_schema_of_a_new_database(upgraded: Upgraded) -> None:
    assert _without_casts(upgraded.schema) ^ _without_casts(upgraded.fresh) == set()
    assert upgraded.changes == {}
    assert [name for name in upgraded.plan if "0001_schema" in name] == []
    assert "deployments.0005_end_of_0_2_0" in upgraded.plan


def _without_casts(schema: set[str]) -> set[str]:
    """pg_dump writes the casts of a list of texts otherwise than PostgreSQL read them."""
    return {re.sub(r"::(character varying|text)(\[\])?|[()]", "", line) for line in schema}


def test_it_is_migrated_once() -> None:
    call_command("migrate", check_unapplied=True, verbosity=0)


def test_people_and_teams() -> None:
    team = Team.objects.get(slug="vision")

    assert (team.quota_gpus, team.monthly_budget_amount, team.is_budget_binding) == (
        100,
        Decimal("5000.00"),
        False,
    )
    assert dict(Membership.objects.filter(team=team).values_list("user__username", "role")) == {
        "member": "member",
        "lead": "lead",
        "lead2": "lead",
        "viewer": "viewer",
    }
    assert User.objects.get(username="admin").is_platform_admin
    delegation = Delegation.objects.get()
    assert (delegation.lead.username, delegation.delegate.username, delegation.reason) == (
        "lead",
        "member",
        "holidays",
    )


def test_a_password_still_opens_and_is_hashed_anew(settings: Any) -> None:
    settings.PASSWORD_HASHERS = portal_settings.PASSWORD_HASHERS
    user = User.objects.get(username="member")
    assert user.password.startswith("pbkdf2_sha256$")

    assert user.check_password("a-long-password-of-member")

    user.refresh_from_db()
    assert user.password.startswith("argon2$")
    assert not user.check_password("another-long-password")


def test_a_token_still_reads_and_requests_but_does_not_decide() -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}

    answer = Client(headers=headers).get("/api/v1/deployments")

    assert answer.status_code == 200
    assert sorted(row["name"] for row in answer.json()["results"]) == [
        *("chat", "classifier", "detector", "explained", "ranker", "shared", "waiting")
    ]
    assert set(ApiToken.objects.values_list("scopes", flat=True)) == {"read upload request"}


def test_versions_have_files_and_typed_metadata() -> None:
    first = ModelVersion.objects.get(model__name="detector", number=1)
    file = first.files.get()

    assert (file.key, file.s3_version_id, file.sha256, file.declared_sha256) == (
        "uploads/vision/detector/1-0a1b/artifact",
        "v1",
        "1" * 64,
        "1" * 64,
    )
    assert (file.size_bytes, file.part_size_bytes) == (10, 16_777_216)
    assert first.metadata == {
        "framework": "pytorch 2.9",
        "notes": "first",
        "metrics": {"accuracy": 0.91, "map50": 0.5},
        "labels": {"edge": "true", "site": "plant 4", "team": "vision", "night": ""},
    }
    assert first.declared == {
        "supports_batching": True,
        "max_batch_size": 16,
        "largest_inputs": {"x": [16, 1]},
    }
    uploading = ArtifactFile.objects.get(version__number=3)
    assert (uploading.upload_id, uploading.size_bytes) == ("upload-3", 100_000_000)
    assert ArtifactFile.objects.count() == 7
    chat = ModelVersion.objects.get(model__name="chat")
    assert not chat.files.exists()
    assert chat.metadata == {
        "parameters_millions": 8190,
        "dtype": "bf16",
        "context_length": 32768,
        "licence": "Apache-2.0",
        "metrics": {"accuracy": 0.8},
    }
    released = ModelVersion.objects.get(number=6)
    assert released.release == {
        "by": "admin",
        "reason": "read by hand",
        "until": "2026-12-20T09:02:08+00:00",
        "findings": [],
    }


def test_versions_are_found_as_if_they_were_written_today() -> None:
    assert VersionMetric.objects.get(version__number=1, name="map50").value == 0.5
    assert VersionLabel.objects.get(key="team").value == "vision"
    carried = _index()
    assert len(carried) == ModelVersion.objects.count()

    for version in ModelVersion.objects.all():
        search_index.write(version)

    assert _index() == carried


def _index() -> list[tuple[Any, ...]]:
    return list(VersionDocument.objects.order_by("pk").values_list("pk", "text", "vector"))


def test_specs_run_what_they_ran() -> None:
    specs = {
        revision.deployment.name: serving_spec.read_stored(revision.spec)
        for revision in Revision.objects.filter(number=1)
    }

    assert {spec.network.access for spec in specs.values()} == {"open"}
    shared = specs["shared"]
    assert shared.scaling.sqs is not None
    assert shared.scaling.sqs.model_dump() == {
        "queue_url": "https://sqs.us-east-1.amazonaws.com/111122223333/jobs",
        "messages": 30,
    }
    assert (shared.scaling.kind, shared.scaling.metric, shared.scaling.target) == ("keda", "", 0)
    assert shared.scaling.office_hours is not None
    assert shared.scaling.office_hours.replicas == 2
    assert [(one.label, one.warm_up) for one in shared.additional_models] == [("ocr:1", True)]
    assert shared.env == (("APP_MODE", "fast"),)
    assert specs["chat"].llm is not None
    assert specs["chat"].llm.max_model_len == 8192
    assert [event.message for event in DeploymentEvent.objects.filter(kind="upgrade")] == [
        "From 0.3.0 on r1 runs without registry.example/explainer:1 and registry.example/transformer:1: images of "
        "transformers and explainers are no longer a setting."
    ]


def test_every_revision_is_rendered() -> None:
    kinds = {}
    for revision in Revision.objects.select_related("deployment"):
        manifests = rendered.render_revision(revision).manifests
        kinds[f"{revision.deployment.name}-r{revision.number}"] = {one["kind"] for one in manifests}

    assert len(kinds) == 8
    assert "InferenceService" in kinds["detector-r1"]
    assert "ScaledObject" in kinds["shared-r1"]


def test_requests_and_approvals() -> None:
    deploy = ChangeRequest.objects.get(deployment__name="detector", kind="deploy")
    approval = deploy.approvals.get()

    assert (deploy.state, deploy.team.slug, deploy.requester.username) == (
        "done",
        "vision",
        "member",
    )
    assert (approval.user.username, approval.is_approved, approval.evidence_hash) == (
        "lead",
        True,
        deploy.evidence_hash,
    )
    pipeline = Pipeline.objects.get()
    create, change = ChangeRequest.objects.filter(pipeline=pipeline).order_by("pk")
    assert (create.kind, create.state, create.pipeline_spec) == ("create", "done", pipeline.spec)
    assert create.approvals.get().user.username == "lead"
    assert (change.kind, change.state, change.comment) == (
        "change",
        "submitted",
        "classifier may fail",
    )
    assert (change.next_check_at, change.deadline_at) == (change.deadline_at,) * 2
    review = EmergencyReview.objects.get()
    assert (review.opened_by.username, review.closed_at) == ("lead", None)
    rule = ApprovalRule.objects.get()
    assert (rule.only_opening, [person.username for person in rule.people.all()]) == (
        False,
        ["lead2"],
    )


def test_rollouts() -> None:
    rollout = Rollout.objects.get()
    plan = rollout_plan.read_stored(rollout.plan, rollout.steps)

    assert (rollout.phase, rollout.step_index, rollout.tests) == ("running", 0, {})
    assert [step.weight for step in plan.steps] == [10, 50]
    assert [guard.metric for guard in plan.guards.root] == [
        *("error_rate", "latency_mean", "latency_p95", "promql")
    ]
    assert (plan.move_alias, plan.watch_seconds, plan.warmup_seconds) == ("champion", 0, 0)
    assert {row["guard"] for row in rollout.evidence} >= {"Traffic split"}
    assert rollout.observed["split"]["observed"] > 0
    assert all("message" in row for one in RolloutVerdict.objects.all() for row in one.guards)
    template = RolloutTemplate.objects.get()
    assert rollout_plan.read_stored(template.plan, template.steps).steps == plan.steps


def test_what_was_observed_and_posted() -> None:
    classifier = Deployment.objects.get(name="classifier")
    drift = Drift.from_json(classifier.drift)

    assert (drift.outcome, drift.reverts, drift.edits[0].desired) == (DriftOutcome.PENDING, 1, "1")
    assert ObservedPipeline.from_json(Pipeline.objects.get().observed).conditions
    assert [run.message for run in GoldenRun.objects.order_by("pk")] == [
        "1 of 1 golden requests passed",
        "1 of 1 golden requests passed",
    ]
    assert GoldenResult.objects.filter(verdict="pass").exists()
    assert SyntheticRequest.objects.count() == 6
    assert QualityObservation.objects.filter(kind="labels").count() == 2
    assert EmbeddingReference.objects.get().n == 2
    assert GitDelivery.objects.get().repository_url == "https://git.example.org/fleet.git"
    assert GitExport.objects.get().deployment == Deployment.objects.get(name="ranker")


def test_the_ledger_and_its_sums() -> None:
    month = LedgerMonth.objects.get(team_slug="vision", is_idle=False)
    rows = LedgerRow.objects.filter(team_slug="vision")

    assert rows.count() == 4
    assert month.cost_micros == 3 * 754_500 - 83_833
    assert month.gpu_milliseconds == 3 * 2_700_000 - 300_000
    for sums in (LedgerDay, LedgerTeamDay, LedgerFourHours):
        total = sum(row.cost_micros for row in sums.objects.all())
        assert total == sum(int(row.cost_amount * 1_000_000) for row in LedgerRow.objects.all())
    assert LedgerFourHours.objects.filter(is_demo=True).get().team_slug == "nlp"


def test_prices_of_people_are_not_those_of_the_catalogue() -> None:
    rows = InstancePrice.objects.order_by("id").values_list("source", "origin")

    assert list(rows) == [
        (
            "karpenter-provider-aws, generated from the AWS price list (Linux, on-demand)",
            "catalogue",
        ),
        ("agreement of 2026", "person"),
    ]


def test_the_audit_trail_is_sealed_from_its_oldest_event(upgraded: Upgraded) -> None:
    events = AuditEvent.objects.count()
    assert events == upgraded.rows["audit_auditevent"]

    with time_machine.travel(AT + timedelta(minutes=10)):
        while sealing.seal():
            pass
        report = verification.verify(with_store=False)

    assert ChainLink.objects.count() == events
    assert (report.problem, report.unsealed) == (None, 0)


def test_channels_and_links() -> None:
    addresses = {
        channel.kind: vault.unseal(channel.sealed_address) for channel in Channel.objects.all()
    }

    assert addresses["email"] == "lead@example.org"
    assert set(Notice.objects.values_list("event", flat=True)) <= {
        *("approval.requested", "approval.decided", "change.finished", "rollout.waits")
    }
    assert DecisionLink.objects.exists()


def test_pages_answer(lead: Client, cluster: RecordingCluster) -> None:
    versions = [f"/vision/models/detector/{number}" for number in range(1, 7)]
    tabs = ("", "/manifests", "/timeline", "/cost", "/rollout", "/callers", "/quality")
    deployments = [f"/vision/deployments/detector{tab}" for tab in tabs]
    deployments += [
        f"/vision/deployments/{name}{tab}"
        for name in ("shared", "chat", "explained", "classifier", "waiting")
        for tab in ("", "/manifests")
    ]
    lists = (
        "/vision",
        "/vision/models",
        "/vision/deployments",
        "/vision/pipelines",
        "/approvals",
        "/costs",
        "/costs/ledger",
    )
    others = ("/fleet", "/audit", "/alerts", "/vision/models/detector", "/vision/pipelines/both")

    answers = {
        path: lead.get(path, follow=True).status_code
        for path in (*lists, *others, *versions, *deployments)
    }

    assert {path: status for path, status in answers.items() if status != 200} == {}


def test_every_request_has_its_page(lead: Client, cluster: RecordingCluster) -> None:
    pages = {
        change.pk: lead.get(f"/approvals/{change.pk}").status_code
        for change in ChangeRequest.objects.all()
    }

    assert len(pages) == 7
    assert set(pages.values()) == {200}


def test_an_open_request_is_approved_with_what_it_shows_now(cluster: RecordingCluster) -> None:
    """Manifests are others than those of 0.2.0, so what it showed then is refused."""
    change = ChangeRequest.objects.get(deployment__name="waiting")
    lead = User.objects.get(username="lead")
    stale = change.evidence_hash

    with pytest.raises(Conflict):
        decisions.approve(actor=lead, change_id=change.pk, evidence_hash=stale)

    shown = evidence.review(change).digest
    decisions.approve(actor=lead, change_id=change.pk, evidence_hash=shown)
    change.refresh_from_db()
    assert change.state == "approved"


def test_deployments_and_their_rollout_are_reconciled(cluster: RecordingCluster) -> None:
    Deployment.objects.update(next_check_at=AT)
    Rollout.objects.update(next_check_at=AT)

    for _ in range(8):
        reconcile.sweep()
        rollout_reconcile.sweep()
        Deployment.objects.update(next_check_at=AT)

    assert {"detector-r1", "detector-r2", "explained-r1", "ranker-r1"} <= set(
        cluster.names("InferenceService")
    )
    explained = cluster.objects["InferenceService", "vision", "explained-r1"]
    assert set(explained["spec"]) == {"predictor"}
    assert cluster.weights("vision", "detector") == {
        "detector-r1-predictor": 90,
        "detector-r2-predictor": 10,
    }
    assert list(Deployment.objects.exclude(check_failures=0)) == []
    assert Rollout.objects.get().phase == "running"


def test_doctor_finds_nothing_to_migrate(doctor: Doctor) -> None:
    lines = doctor("database")

    # The clock of this test is that of the dump.
    assert failing(lines) == {"Clock"}
    assert lines["Migrations"].detail == "all applied"
