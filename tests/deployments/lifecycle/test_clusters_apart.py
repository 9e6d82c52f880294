"""A cluster that hangs, or is gone, holds up nothing of another one."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from deployments.changes.services import decisions, requests
from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.models import Deployment
from fleet.kube.domain.connection import Connection
from fleet.kube.domain.errors import Unreachable
from fleet.kube.services import clients
from fleet.models import Cluster
from portal.core import clock
from tests.deployments.recording_cluster import RecordingCluster
from tests.deployments.world import World

_SECONDS = 60


class Fast(RecordingCluster):
    """Says when its workload has been applied."""

    def __init__(self) -> None:
        super().__init__()
        self.has_served = threading.Event()

    def apply(self, manifest: Any, **options: Any) -> Any:
        made = super().apply(manifest, **options)
        if manifest["kind"] == "InferenceService" and not options["dry_run"]:
            self.has_served.set()
        return made


class Hanging(RecordingCluster):
    """Gives no answer before the other cluster serves, and then that it cannot be reached."""

    def __init__(self, other: Fast) -> None:
        super().__init__()
        self.hangs = False
        self.waits: list[bool] = []
        self._other = other

    def _answer(self) -> None:
        if self.hangs:
            self.waits.append(self._other.has_served.wait(_SECONDS))
            raise Unreachable("connection timed out")


@pytest.mark.django_db(transaction=True)
def test_a_cluster_that_hangs_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = Fast()
    hanging = Hanging(fast)
    made = {"eks-test": hanging, "second": fast}

    def connect(connection: Connection) -> RecordingCluster:
        return made[connection.name]

    monkeypatch.setattr(clients, "factory", connect)
    clients.forget()
    row = Cluster.objects.get()
    row.pk, row.name, row.created_at = None, "second", clock.now()
    row.save()
    for name, cluster_id in (("here", world.cluster_id), ("there", row.pk)):
        draft = replace(world.draft(name), cluster_id=cluster_id)
        change = requests.request_deploy(actor=world.member, draft=draft)
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    hanging.hangs = True
    apply_changes.sweep()

    reconcile.sweep()

    assert hanging.waits
    assert all(hanging.waits), "the other cluster was served only after this one gave up"
    assert fast.names("InferenceService") == ["there-r1"]
    assert hanging.writes == []
    failures = dict(Deployment.objects.values_list("name", "check_failures"))
    assert failures == {"here": 1, "there": 0}
