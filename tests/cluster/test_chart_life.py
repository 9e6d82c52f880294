"""A release of the chart from the first try to the last: Secrets that are missing, scaling by hand, other values, its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import helm
from tests.cluster.helm import Helm
from tests.cluster.installed_portal import HOST
from tests.cluster.kubectl import Kubectl
from tests.cluster.test_chart import chart, restricted
from tests.cluster.waiting import wait_until

__all__ = ["chart", "restricted"]

_VALUES: dict[str, Any] = {
    "image": {"repository": "registry.example.org/slipway"},
    "host": HOST,
    "secretSettings": [{"name": "SLIPWAY_SMTP_URL", "secretName": "mail", "key": "url"}],
    "metrics": {"tokenSecret": {"name": "scrape", "key": "token"}},
    "web": {"tlsSecretName": "web-tls"},
    "clusterCredentialsSecretName": "clusters",
}
_SECRETS: dict[str, dict[str, str]] = {
    "slipway": {
        "SLIPWAY_SECRET_KEY": "a-key-of-this-test-only-" * 2,
        "SLIPWAY_DATABASE_URL": "postgres://slipway:x@db/slipway",
        "SLIPWAY_REDIS_URL": "redis://valkey:6379/0",
    },
    "slipway-migrations": {"SLIPWAY_DATABASE_URL": "postgres://owner:x@db/slipway"},
    "mail": {"url": "smtps://x"},
    "scrape": {"token": "sixteen-characters"},
    "web-tls": {"tls.crt": "x", "tls.key": "x"},
    "clusters": {"prod": "x"},
}
_DEPLOYMENTS = ("web", "worker-delivery", "worker-telemetry", "beat", "watcher")
_HPA = {"kind": "hpa", "min": 2, "max": 5, "cpuPercent": 60}
_BY_HAND = {"web": 3, "worker-delivery": 5, "worker-telemetry": 1, "beat": 0, "watcher": 0}


@dataclass(frozen=True, slots=True)
class Release:
    chart: Helm
    admin: Kubectl
    namespace: str
    folder: Path

    def put_secrets(self, secrets: dict[str, dict[str, str]] = _SECRETS) -> None:
        self.admin.apply(
            [helm.secret(self.namespace, name, **data) for name, data in secrets.items()]
        )

    def upgrade(self, *options: str, **values: Any) -> str:
        """The notes. Nothing runs pods here, so hooks are left out unless they are what is tried."""
        hooks = () if any("--timeout" in option for option in options) else ("--no-hooks",)
        return self._run(
            "upgrade", "--install", "portal", str(helm.CHART), *hooks, *options,
            "--values", str(helm.write_values(self.folder, **{**_VALUES, **values})),
        )  # fmt: skip

    def uninstall(self) -> None:
        self._run("uninstall", "portal", "--no-hooks", "--ignore-not-found")

    def replicas(self) -> dict[str, int]:
        return {role: self.deployment(role)["spec"]["replicas"] for role in _DEPLOYMENTS}

    def deployment(self, role: str) -> dict[str, Any]:
        return self.admin.get("deployment", f"portal-{role}", self.where)

    def scale(self, **counts: int) -> None:
        for role, count in counts.items():
            self.admin.run("scale", f"deployment/portal-{role}", f"--replicas={count}", self.where)

    def left(self, kinds: str) -> list[str]:
        return self.admin.run("get", kinds, self.where, "--output=name").split()

    @property
    def where(self) -> str:
        return f"--namespace={self.namespace}"

    def _run(self, *arguments: str) -> str:
        return self.chart.run(*arguments, self.where, "--kubeconfig", str(self.admin.kubeconfig))


@pytest.fixture
def release(chart: Helm, admin: Kubectl, restricted: str, tmp_path: Path) -> Release:
    where = f"--namespace={restricted}"
    wait_until(
        lambda: "default" in admin.run("get", "serviceaccounts", where, "--output=name"),
        lambda: "the namespace has no default service account",
    )
    return Release(chart, admin, restricted, tmp_path)


def _without(name: str, key: str | None) -> dict[str, dict[str, str]]:
    if key is None:
        return {other: data for other, data in _SECRETS.items() if other != name}
    data = {other: value for other, value in _SECRETS[name].items() if other != key}
    return {**_SECRETS, name: {**data, "something-else": "x"}}


_MISSING = [
    *((name, None) for name in _SECRETS),
    *((name, key) for name, data in _SECRETS.items() for key in data if name != "clusters"),
]


@pytest.mark.parametrize(("name", "key"), _MISSING)
def test_a_secret_that_is_missing_is_named_at_once(
    name: str, key: str | None, release: Release
) -> None:
    release.put_secrets(_without(name, key))

    with pytest.raises(helm.Refused) as refused:
        release.upgrade()

    assert f"the Secret {name} " in str(refused.value)
    assert (f"has no key {key}" if key else f"is missing in namespace {release.namespace}") in str(
        refused.value
    )
    assert release.left("deployments,jobs,pods,networkpolicies") == []


def test_where_helm_may_not_read_secrets_nothing_is_checked(release: Release) -> None:
    release.upgrade(checkSecrets=False)

    assert release.replicas()["web"] == 2


def test_a_migration_that_does_not_start_leaves_nothing_behind(release: Release) -> None:
    """The kubelet would wait for a missing Secret; here nothing runs pods at all."""
    with pytest.raises(helm.Refused):
        release.upgrade("--timeout=3s", checkSecrets=False)

    left = "jobs,networkpolicies"
    wait_until(lambda: release.left(left) == [], lambda: str(release.left(left)))
    release.uninstall()
    assert release.left("jobs,networkpolicies,deployments,services") == []


def test_scaling_by_hand_stays_through_upgrades(
    release: Release, journey: Callable[[str], None]
) -> None:
    release.put_secrets()
    release.upgrade()
    expected = {role: 1 if role in ("beat", "watcher") else 2 for role in _DEPLOYMENTS}
    assert release.replicas() == expected

    release.scale(**_BY_HAND)
    for minutes in ("15", "30"):
        notes = release.upgrade(settings={"SLIPWAY_STEP_UP_MINUTES": minutes})
        assert release.replicas() == _BY_HAND
    assert "portal-web stays at 3 replicas" in notes
    assert "scale deploy/portal-beat --replicas=1" in notes
    journey("the chart: replicas set by kubectl stay through upgrades by Helm 4")


def test_values_decide_while_nobody_else_has(release: Release) -> None:
    release.put_secrets()
    release.upgrade()

    notes = release.upgrade(web={"replicas": 4, "tlsSecretName": "web-tls"})

    assert release.replicas()["web"] == 4
    assert "stays at" not in notes


@pytest.mark.parametrize("is_scaled_by_hand", [False, True])
def test_an_autoscaler_takes_over_and_hands_back_without_a_drop(
    is_scaled_by_hand: bool, release: Release
) -> None:
    release.put_secrets()
    release.upgrade(web={"replicas": 3, "tlsSecretName": "web-tls"})
    expected = 3
    if is_scaled_by_hand:
        release.scale(web=4)
        expected = 4

    autoscaled = {"replicas": 3, "tlsSecretName": "web-tls", "autoscaling": _HPA}
    release.upgrade(web=autoscaled)
    assert release.replicas()["web"] == expected
    release.upgrade(web=autoscaled, settings={"SLIPWAY_STEP_UP_MINUTES": "15"})
    assert release.replicas()["web"] == expected

    release.scale(web=5)  # as the autoscaler does, by the same subresource
    release.upgrade(web=autoscaled, settings={"SLIPWAY_STEP_UP_MINUTES": "30"})
    assert release.replicas()["web"] == 5
    notes = release.upgrade(web={"replicas": 3, "tlsSecretName": "web-tls"})
    assert release.replicas()["web"] == 5
    assert "portal-web stays at 5 replicas" in notes
    release.scale(web=3)
    assert "stays at" not in release.upgrade(web={"replicas": 3, "tlsSecretName": "web-tls"})


def test_pods_restart_at_the_upgrade_after_a_secret_changed(release: Release) -> None:
    release.put_secrets()
    release.upgrade()
    before = {role: release.deployment(role)["spec"]["template"] for role in _DEPLOYMENTS}

    release.upgrade()
    assert {role: release.deployment(role)["spec"]["template"] for role in _DEPLOYMENTS} == before

    seen = {_checksum(before["web"])}
    for name, data in _SECRETS.items():
        release.put_secrets({name: {key: f"{value}-new" for key, value in data.items()}})
        release.upgrade()
        sums = {_checksum(release.deployment(role)["spec"]["template"]) for role in _DEPLOYMENTS}
        assert len(sums) == 1
        assert not sums & seen, name
        seen |= sums


def _checksum(template: dict[str, Any]) -> str:
    return str(template["metadata"]["annotations"]["checksum/secrets"])
