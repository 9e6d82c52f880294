"""A cluster that fleet knows, with a fake behind it, and a real API server where a test wants one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.kube.services import clients
from fleet.models import Cluster
from fleet.observation.services import workloads
from fleet.prices.services import catalogue as prices
from portal.accounts.models import Team
from portal.accounts.policy import SYSTEM
from tests.accounts import make_team
from tests.fleet import objects
from tests.fleet.fakes import FakeKube
from tests.localcluster.conftest import LocalApi, start_api, stop_api


@pytest.fixture
def kube(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKube]:
    fake = FakeKube()
    monkeypatch.setattr(clients, "factory", lambda _connection: fake)
    clients.forget()
    yield fake
    clients.forget()


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(
        name="local",
        kind="local",
        kubeconfig_path="/nowhere",
        gateway_url="http://127.0.0.1:1",
        created_at=objects.START,
        next_check_at=objects.START,
    )


@pytest.fixture
def vision(db: None) -> Team:
    return make_team(slug="vision")


@pytest.fixture
def detector(cluster: Cluster, vision: Team) -> int:
    """The workload detector-r1 of team vision."""
    return workloads.register(
        cluster_id=cluster.pk,
        team=vision,
        namespace="vision",
        name="detector-r1",
        labels={"deployment": "detector", "revision": "1", "model": "vision/detector"},
        triton_models=["detector"],
    )


@pytest.fixture
def catalogue(db: None) -> None:
    prices.load_catalogue(actor=SYSTEM)


@pytest.fixture(scope="session")
def live_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalApi]:
    """The local cluster's API server over HTTPS, without controllers."""
    process, api = start_api(tmp_path_factory.mktemp("live-api"))
    yield api
    stop_api(process)
