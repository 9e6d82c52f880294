"""A cluster that misbehaves: a real proxy before a real API server. Each time the cluster ends up
as approved, and nothing else was written.
"""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import decisions, requests
from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.models import ChangeRequest, Deployment
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.gateways.transport import Transport
from portal.core import leases
from tests.deployments.live_cluster import ISVC, Live, module_api
from tests.deployments.misbehaving_servers import (
    Proxy,
    approved,
    assert_as_approved,
    assert_only_approved,
    is_there,
    kubeconfig,
    live,
    proxy,
)

__all__ = ["kubeconfig", "live", "module_api", "proxy"]


def test_after_ten_minutes_without_an_api_server_all_is_as_approved(
    live: Live, proxy: Proxy
) -> None:
    deployment = approved(live, "away")
    proxy.fault = (503, {})
    for _ in range(120):
        live.world.clock.move(5)
        assert reconcile.sweep() <= 1, "one call for each pass"
    deployment.refresh_from_db()
    assert "does not answer" in deployment.state_reason
    assert proxy.writes == []

    proxy.fault = None
    live.world.clock.move(5)
    reconcile.sweep()

    deployment.refresh_from_db()
    assert_as_approved(live, proxy, "away")
    assert "does not answer" not in deployment.state_reason
    assert ChangeRequest.objects.get().state == "applying"


def test_a_throttling_server_is_not_called_before_its_retry_after(live: Live, proxy: Proxy) -> None:
    deployment = approved(live, "throttled")
    proxy.fault = (429, {"Retry-After": "120"})
    reconcile.sweep()
    proxy.fault = None

    live.world.clock.move(119)
    assert reconcile.sweep() == 0
    assert proxy.writes == []
    live.world.clock.move(2)
    reconcile.sweep()

    deployment.refresh_from_db()
    assert_as_approved(live, proxy, "throttled")


@pytest.mark.parametrize("status", [500, 502, 401])
def test_server_errors_and_an_expired_token_are_retried(
    live: Live, proxy: Proxy, status: int
) -> None:
    deployment = approved(live, f"broken-{status}")
    proxy.fault = (status, {})
    reconcile.sweep()
    assert proxy.writes == []

    proxy.fault = None
    live.world.clock.move(61)
    reconcile.sweep()

    assert_as_approved(live, proxy, deployment.name)


def test_a_request_to_a_slow_server_times_out_and_is_retried(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = approved(live, "slow")
    monkeypatch.setattr(Transport.request, "__kwdefaults__", _short_timeouts())
    proxy.is_slow.set()
    reconcile.sweep()
    deployment.refresh_from_db()
    assert "does not answer" in deployment.state_reason

    proxy.is_slow.clear()
    live.world.clock.move(61)
    reconcile.sweep()

    assert_as_approved(live, proxy, "slow")


def _short_timeouts() -> dict[str, object]:
    return {**(Transport.request.__kwdefaults__ or {}), "read_seconds": 0.3}


def test_a_worker_killed_between_apply_and_record_costs_one_lease(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = approved(live, "killed")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("deployments.delivery.services.record.record", die)
        with pytest.raises(KeyboardInterrupt):
            reconcile.reconcile(deployment_id=deployment.pk)
    assert_as_approved(live, proxy, "killed")
    before = len(proxy.writes)

    live.world.clock.move(91)
    reconcile.sweep()

    deployment.refresh_from_db()
    assert deployment.observed_generation == deployment.desired_generation
    assert len(proxy.writes) == before, "what was written is not written again"


def test_one_object_that_always_fails_does_not_delay_others(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fleet.kube.domain.errors import Unreachable

    bad, good = approved(live, "webhook-down"), approved(live, "fine")
    apply = HttpKubeClient.apply

    def fails_for_one(self: Any, manifest: Any, **options: Any) -> Any:
        if manifest["metadata"]["name"] == "webhook-down-r1":
            raise Unreachable("failed calling webhook")
        return apply(self, manifest, **options)

    monkeypatch.setattr(HttpKubeClient, "apply", fails_for_one)
    reconcile.sweep()

    bad.refresh_from_db()
    assert_as_approved(live, proxy, good.name)
    assert not is_there(live, bad.name)
    assert "failed calling webhook" in bad.state_reason


def test_another_field_manager_is_overruled_on_the_portals_own_objects(
    live: Live, proxy: Proxy
) -> None:
    deployment = approved(live, "contested")
    reconcile.sweep()
    live.edit(f"{ISVC}/contested-r1", {"spec": {"predictor": {"maxReplicas": 9}}}, manager="argo")

    live.reconcile_now(deployment)

    live_object = live.get(f"{ISVC}/contested-r1")
    assert live_object is not None
    assert live_object["spec"]["predictor"]["maxReplicas"] == 1
    assert_only_approved(proxy)


def test_without_a_broker_the_sweeps_deliver(live: Live, proxy: Proxy) -> None:
    change = requests.request_deploy(actor=live.world.member, draft=live.world.draft("flushed"))
    decisions.approve(
        actor=live.world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
    )

    apply_changes.sweep()
    reconcile.sweep()

    assert_as_approved(live, proxy, "flushed")


def test_nothing_is_written_while_another_worker_has_the_lease(live: Live, proxy: Proxy) -> None:
    deployment = approved(live, "fenced")
    lease = leases.claim(Deployment, deployment.pk, seconds=60)
    assert lease is not None

    assert reconcile.reconcile(deployment_id=deployment.pk)

    assert proxy.writes == []
