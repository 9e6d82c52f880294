"""KEDA itself, for the deployments of one test's namespace."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deployments.manifests.domain.metadata import ManifestContext
from fleet.kube.services import objects
from tests.cluster import build
from tests.cluster.build import Build
from tests.cluster.keda import running
from tests.cluster.keda.artifact import KEDA
from tests.cluster.kubectl import Kubectl
from tests.cluster.scaled import TARGET, revision_with, spec_scaled_by, wait_for_replicas
from tests.cluster.waiting import wait_until
from tests.fixtures.aws_server import serving_aws


@pytest.fixture(scope="session")
def keda_build() -> Build:
    made = build.cached(KEDA)
    if made is None:
        pytest.skip(f"KEDA {KEDA.release} was not built: there was no time for it")
    return made


@dataclass(frozen=True, slots=True)
class Scaled:
    """A deployment of one namespace, which the portal's account applies and KEDA scales."""

    cluster_id: int
    context: ManifestContext
    admin: Kubectl
    keda_logs: Callable[[], str]

    def apply(self, **scaling: Any) -> None:
        manifests = revision_with(self.context, spec_scaled_by({"kind": "keda", **scaling}))
        assert {"Deployment", "ScaledObject"} < {manifest["kind"] for manifest in manifests}
        objects.apply(cluster_id=self.cluster_id, manifests=manifests)

    def wait_for(self, replicas: int) -> None:
        wait_for_replicas(self.admin, self.context.namespace, replicas, self.keda_logs)

    def wait_until(self, kind: str, status: str) -> None:
        """Until a condition of the ScaledObject has this status."""
        wait_until(lambda: self._is_condition(kind, status), self.keda_logs)

    def _is_condition(self, kind: str, status: str) -> bool:
        where = f"--namespace={self.context.namespace}"
        found = self.admin.get("scaledobject", TARGET, where).get("status", {})
        return any(
            (one["type"], one["status"]) == (kind, status) for one in found.get("conditions", [])
        )

    def replicas(self) -> int:
        where = f"--namespace={self.context.namespace}"
        return int(self.admin.get("deployment", TARGET, where)["spec"]["replicas"])


@pytest.fixture
def sqs_server() -> Iterator[str]:
    with serving_aws("sqs") as address:
        yield address


@pytest.fixture
def scaled(
    keda_build: Build,
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    tmp_path: Path,
    sqs_server: str,
) -> Iterator[Scaled]:
    """KEDA's own role is that of the environment, and SQS a server of its own."""
    environment = {
        "AWS_ACCESS_KEY_ID": "keda",
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(8),
        "AWS_ENDPOINT_URL_SQS": sqs_server,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with running.running(
        keda_build, admin, tmp_path, watched=context.namespace, environment=environment
    ) as logs:
        yield Scaled(cluster_id, context, admin, logs)
