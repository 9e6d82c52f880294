"""How soon after a click on Approve the object is on the API server.

A page of a request makes all checks, the server's own dry-run included, when it is opened; a click
within a minute relies on them, a later one makes them again. Both are timed, by turns, from the click
until a bare GET finds the InferenceService; the first is the value. One Celery worker, woken through
the broker, does the rest.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.result import Result
from tests.benchmarks.scene import Scene, scene
from tests.fixtures.aws_server import serving_aws

if TYPE_CHECKING:
    import httpx

    from deployments.models import ChangeRequest, ModelVersion
    from portal.accounts.models import Team, User

COUNT = 81
MOST_MS = 500
_TEAM = "clicks"
_BUCKET = "slipway-models"
_CONTENT = b"model bytes"
_ROOT = Path(__file__).parents[2]
_QUEUES = "delivery,telemetry,artifacts"


def main() -> Result:
    print(__doc__)
    with _object_store(), scene() as where, _worker(), where.api.client() as http:
        from deployments.changes.services import recheck

        first, *others = _request_all(where)
        # The worker connects to everything with the first.
        _click(http, where.lead, first)
        opened, late = [], []
        for number, change in enumerate(others):
            if number % 2:
                late.append(_click(http, where.lead, change))
            else:
                recheck.repeat(actor=where.lead, change_id=change.pk)
                opened.append(_click(http, where.lead, change))
    p95 = _print_p95("page just opened", opened)
    _print_p95("page left open for long", late)
    return Result("approve", round(p95), MOST_MS, "ms at p95 from the click to the object")


def _print_p95(what: str, seconds: list[float]) -> float:
    """The 95th percentile in milliseconds."""
    p95 = statistics.quantiles(seconds, n=20)[-1] * 1000
    median = statistics.median(seconds) * 1000
    print(f"{what}: {len(seconds)} approvals, median {median:.0f} ms, p95 {p95:.0f} ms")
    return p95


@contextlib.contextmanager
def _object_store() -> Iterator[None]:
    with serving_aws("s3") as address:
        os.environ["SLIPWAY_S3_ENDPOINT_URL"] = address
        os.environ["SLIPWAY_S3_BUCKET"] = _BUCKET
        yield


@contextlib.contextmanager
def _worker() -> Iterator[None]:
    command = [sys.executable, "-m", "celery", "-A", "portal.celery", "worker", "--pool", "threads"]
    process = subprocess.Popen(
        [*command, "--concurrency", "8", "--queues", _QUEUES, "--loglevel", "WARNING"],
        cwd=_ROOT,
        env=dict(os.environ),
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def _request_all(where: Scene) -> list[ChangeRequest]:
    """One request for each of COUNT deployments, by a member."""
    from deployments.changes.services import requests
    from deployments.preflight.services.preflight import DeployDraft
    from deployments.spec.domain.serving_spec import Network, ServingSpec
    from portal.accounts.models import Role
    from tests.accounts import make_membership, make_team, make_user

    team = make_team(slug=_TEAM, quota_gpus=COUNT, monthly_budget_amount=Decimal(10**7))
    member = make_user(username="member")
    make_membership(user=member, team=team, role=Role.MEMBER)
    make_membership(user=where.lead, team=team, role=Role.LEAD)
    version = _lay_out(team, member)
    spec = ServingSpec(
        engine="kserve-triton", instance_type="g5.xlarge", network=Network(access="open")
    )
    return [
        requests.request_deploy(
            actor=member, draft=DeployDraft(version.pk, where.cluster_id, f"click-{n:02}", spec)
        )
        for n in range(COUNT)
    ]


def _lay_out(team: Team, user: User) -> ModelVersion:
    from django.conf import settings

    from deployments.models import Model, ModelVersion
    from deployments.registry.domain import object_keys
    from deployments.registry.gateways import bucket_setup, object_store
    from deployments.states import VersionState
    from portal.core import clock
    from tests import recorded

    at = clock.now()
    bucket_setup.prepare(
        object_store.s3_store(),
        region=settings.SLIPWAY_S3_REGION,
        origins=["http://127.0.0.1:8000"],
    )
    prefix = f"repositories/{team.slug}/detector/1/{'ab' * 6}/"
    for key in (
        object_keys.model_file_key(prefix, "detector", "model.onnx"),
        object_keys.config_key(prefix, "detector"),
    ):
        object_store.store().put(key, _CONTENT, content_type="application/octet-stream")
    model = Model.objects.create(
        team=team, name="detector", created_by=user, created_at=at, changed_at=at
    )
    return ModelVersion.objects.create(
        model=model,
        number=1,
        state=VersionState.READY,
        filename="detector.onnx",
        declared_size_bytes=len(_CONTENT),
        size_bytes=len(_CONTENT),
        bucket=_BUCKET,
        upload_prefix="uploads/1/",
        sha256="1" * 64,
        repository_prefix=prefix,
        laid_out=recorded.rows_of(object_store.store(), prefix),
        created_by=user,
        created_at=at,
    )


def _click(http: httpx.Client, lead: User, change: ChangeRequest) -> float:
    """Seconds until the object is there."""
    from deployments.changes.services import decisions

    name = f"{change.deployment.name}-r1"
    path = f"/apis/serving.kserve.io/v1beta1/namespaces/{_TEAM}/inferenceservices/{name}"
    began = time.monotonic()
    decisions.approve(actor=lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    while http.get(path).status_code != 200:
        assert time.monotonic() - began < 60, f"{name} never came"
        time.sleep(0.005)
    return time.monotonic() - began
