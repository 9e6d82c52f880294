"""The cluster under contract: the local one over HTTPS, or the one SLIPWAY_TEST_KUBECONFIG names."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.kube.services import clients
from portal.core import clock
from tests.capabilities import offering
from tests.cluster.kubectl import Kubectl
from tests.contract import account
from tests.installations import use_same_installation
from tests.localcluster.conftest import start_api, stop_api


def named_cluster() -> Path | None:
    """The real cluster that the environment names."""
    named = os.environ.get("SLIPWAY_TEST_KUBECONFIG", "")
    if named and not Path(named).is_file():
        raise pytest.UsageError(f"SLIPWAY_TEST_KUBECONFIG names {named}, where no file is.")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    named = named_cluster()
    if named is not None:
        yield named
        return
    process, api = start_api(tmp_path_factory.mktemp("contract-cluster"))
    yield api.kubeconfig
    stop_api(process)


@pytest.fixture
def cluster_id(db: None, kubeconfig: Path) -> Iterator[int]:
    from fleet.models import Cluster

    clients.forget()
    use_same_installation()
    cluster = Cluster.objects.create(
        name="contract",
        kind="kubeconfig",
        kubeconfig_path=str(kubeconfig),
        gateway_url="http://gateway.example",
        capabilities=offering(*serving_spec.ONNX_ENGINES),
        created_at=clock.now(),
    )
    admin = account.administrator()
    if admin is not None:
        account.grant_reading(admin, cluster.pk)
    yield cluster.pk
    clients.forget()


@contextmanager
def new_namespace(cluster_id: int) -> Iterator[str]:
    """Removed afterwards, so that a real cluster stays clean."""
    from fleet.kube.services import objects

    name = f"slipway-contract-{secrets.token_hex(5)}"
    admin = account.administrator()
    if admin is not None:
        account.make_namespaces(admin, cluster_id, [name])
        yield name
        admin.run("delete", "namespace", name, "--wait=false")
        return
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    objects.apply(cluster_id=cluster_id, manifests=[manifest])
    yield name
    objects.delete(
        cluster_id=cluster_id, api_version="v1", kind="Namespace", namespace=None, name=name
    )


@pytest.fixture
def namespace(cluster_id: int) -> Iterator[str]:
    """A namespace for each test."""
    with new_namespace(cluster_id) as name:
        yield name


@pytest.fixture
def somebody(kubeconfig: Path) -> Kubectl:
    """Another one with rights on the cluster."""
    return account.administrator() or Kubectl(kubeconfig)


@pytest.fixture
def context(namespace: str) -> ManifestContext:
    return ManifestContext(
        team=namespace[:30],
        namespace=namespace,
        deployment="detector",
        deployment_id=4711,
        is_local_cluster=False,
        gateway_namespace="slipway-gateway",
        gateway_name="slipway",
        triton_image="nvcr.io/nvidia/tritonserver:26.07-py3",
        storage_image="kserve/storage-initializer:v0.20.0",
        s3_region="us-east-1",
    )


def served(engine: Any, number: int = 1) -> ServedRevision:
    return ServedRevision(
        number=number,
        model_name="detector",
        version_label=f"detector:{number}",
        sha256="ab" * 32,
        storage_uri=f"s3://bucket/repositories/t/detector/{number}/abc/",
        spec=ServingSpec(engine=engine, instance_type="g5.xlarge", env=(("APP_A", "b"),)),
    )
