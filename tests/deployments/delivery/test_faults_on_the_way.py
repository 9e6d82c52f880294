"""Credentials that expire, a namespace that a person deletes, workers that meet: on a real API
server behind a proxy. Each time the cluster ends up as approved, and nothing else was written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployments.delivery.services import observe_apart, reconcile
from deployments.delivery.services.observe import observe
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest
from fleet.kube.domain.errors import Refused
from fleet.kube.gateways.client import HttpKubeClient
from tests.deployments.lifecycle.test_races import at_once
from tests.deployments.live_cluster import ISVC, PDB, ROUTE, Live, module_api
from tests.deployments.misbehaving_servers import (
    Proxy,
    approved,
    assert_as_approved,
    is_there,
    kubeconfig,
    live,
    proxy,
    write_kubeconfig,
)

__all__ = ["kubeconfig", "live", "module_api", "proxy"]


def test_an_expired_token_is_reported_and_its_replacement_is_used(
    live: Live, proxy: Proxy, kubeconfig: Path
) -> None:
    deployment = approved(live, "expired")
    write_kubeconfig(kubeconfig, server=proxy.url, token="expired")

    reconcile.sweep()

    deployment.refresh_from_db()
    assert "Unauthorized" in deployment.state_reason
    assert ChangeRequest.objects.get().state == "applying"
    assert proxy.writes == []

    write_kubeconfig(kubeconfig, server=proxy.url, token=proxy.api.token)
    live.world.clock.move(61)
    reconcile.sweep()

    assert_as_approved(live, proxy, "expired")


def test_a_token_that_expires_between_two_objects_does_not_fail_the_revision(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = approved(live, "expires")
    apply = HttpKubeClient.apply

    def expire(self: Any, manifest: Any, **options: Any) -> Any:
        if manifest["kind"] == "InferenceService":
            raise Refused("Unauthorized")
        return apply(self, manifest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(HttpKubeClient, "apply", expire)
        reconcile.sweep()
    deployment.refresh_from_db()
    assert "rejected it" not in deployment.state_reason
    assert not is_there(live, "expires")

    live.world.clock.move(61)
    reconcile.sweep()

    assert_as_approved(live, proxy, "expires")


def test_a_namespace_deleted_during_a_push_is_created_again(live: Live, proxy: Proxy) -> None:
    deployment = approved(live, "bare")
    reconcile.sweep()
    live.http.delete("/api/v1/namespaces/vision")
    for path in (f"{ISVC}/bare-r1", f"{PDB}/bare-r1", f"{ROUTE}/bare"):
        live.http.delete(path)

    live.reconcile_now(deployment)

    assert "being terminated" in deployment.state_reason
    assert not is_there(live, "bare")

    live.remove_namespace("vision")
    live.reconcile_now(deployment)

    assert_as_approved(live, proxy, "bare")
    assert "being terminated" not in deployment.state_reason


def test_a_worker_that_lost_its_lease_overwrites_nothing(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = approved(live, "stalled")

    def stall(deployments: Any) -> Any:
        observed = observe(deployments)
        monkeypatch.setattr(observe_apart, "observe", observe)
        # Meanwhile another worker delivers it, someone stops it, and it is taken away again.
        live.world.clock.move(91)
        reconcile.sweep()
        assert is_there(live, "stalled")
        stop.stop(actor=live.world.member, deployment_id=deployment.pk, reason="stop")
        reconcile.sweep()
        assert not is_there(live, "stalled")
        return observed

    monkeypatch.setattr(observe_apart, "observe", stall)
    reconcile.reconcile(deployment_id=deployment.pk)

    assert not is_there(live, "stalled")
    assert proxy.applied("inferenceservices") == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_at_once_one_writes(
    transactional_db: None, live: Live, proxy: Proxy
) -> None:
    deployment = approved(live, "contended")

    at_once(*[lambda: reconcile.reconcile(deployment_id=deployment.pk)] * 2)

    assert_as_approved(live, proxy, "contended")
    assert proxy.applied("inferenceservices") == 1
    assert proxy.applied("httproutes") == 1
