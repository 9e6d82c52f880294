"""Nothing waits for a cluster while a transaction is open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import transaction

from fleet.clusters.services import capabilities, connection_checks
from fleet.kube.services import clients
from fleet.models import Cluster, MetricSample, Node
from fleet.observation.services import sweep
from fleet.telemetry.services import poll
from portal.accounts.policy import SYSTEM
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node, pod
from tests.network_guard import CalledInTransaction, Guarded, refuse_inside_transaction

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def calls(transactional_db: None, kube: FakeKube, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    connect = clients.connect

    def guarded_connect(connection: Any) -> Any:
        refuse_inside_transaction("a cluster's client")
        return connect(connection)

    monkeypatch.setattr(clients, "factory", lambda _connection: Guarded(kube, made))
    monkeypatch.setattr(clients, "connect", guarded_connect)
    clients.forget()
    return made


def test_the_guard_detects_a_call_inside_a_transaction(calls: list[str], cluster: Cluster) -> None:
    with pytest.raises(CalledInTransaction), transaction.atomic():
        capabilities.probe(cluster_id=cluster.pk)


def test_observing_probing_and_polling(
    calls: list[str], kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    kube.put(node(), pod())
    kube.pages = {"detector-r1-abc": 'nv_inference_request_success{model="detector"} 1\n'}

    with time_machine.travel(START + timedelta(seconds=1), tick=False):
        sweep.observe_due()
        connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)
        poll.poll()

    assert Node.objects.count() == 1
    assert MetricSample.objects.count() == 1
    assert {"list_all", "version", "groups", "proxy_get"} <= set(calls)
