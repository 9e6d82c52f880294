"""A ServiceMonitor that the cluster's Prometheus does not read is a warning with its fix."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Network
from fleet.clusters.domain import monitor_selection
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster
from tests.deployments.world import World
from tests.fleet.clusters.test_monitor_selection import prometheus

_RELEASE = {"serviceMonitorSelector": {"matchLabels": {"release": "stack"}}}
_ALL: dict[str, Any] = {"serviceMonitorNamespaceSelector": {}}
_WATCHED = {"serviceMonitorNamespaceSelector": {"matchLabels": {"watched": "yes"}}}


def _with(*specs: dict[str, Any] | None) -> None:
    """The cluster has the operator and these Prometheus resources; None: they may not be listed."""
    selections = monitor_selection.parse(
        prometheus("k8s", spec) for spec in specs if spec is not None
    )
    features = {name: Feature(is_there=True) for name in ("kubernetes", "kserve", "prometheus")}
    probed = Capabilities(features=features, prometheuses=None if None in specs else selections)
    Cluster.objects.update(capabilities=probed.to_json())


def _checked(world: World) -> tuple[Check, dict[str, Any]]:
    draft = world.draft(network=Network(access="open", service_monitor=True))
    result = preflight.check(actor=world.member, draft=draft)
    (check,) = [check for check in result.checks if check.name == "ServiceMonitor"]
    (monitor,) = [
        manifest
        for manifest in yaml.safe_load_all(result.manifests)
        if manifest["kind"] == "ServiceMonitor"
    ]
    assert result.can_submit
    return check, monitor["metadata"]["labels"]


def test_the_monitor_carries_the_label_and_is_read(world: World) -> None:
    _with(_RELEASE | _ALL)

    check, labels = _checked(world)

    assert (check.ok, check.detail) == (True, "Prometheus monitoring/k8s reads it.")
    assert labels["release"] == "stack"
    assert labels["slipway.dev/deployment"] == "detector"


def test_a_selector_takes_no_label_of_the_portal(world: World) -> None:
    selector = {"matchLabels": {"app.kubernetes.io/managed-by": "helm"}}
    _with({"serviceMonitorSelector": selector, **_ALL})

    _, labels = _checked(world)

    assert labels["app.kubernetes.io/managed-by"] == "slipway"


@pytest.mark.parametrize(
    ("spec", "detail", "fix"),
    [
        (
            _RELEASE,
            "Prometheus monitoring/k8s does not read ServiceMonitors of namespace vision.",
            "Set serviceMonitorNamespaceSelector of the Prometheus: {} reads all namespaces.",
        ),
        (
            _RELEASE | _WATCHED,
            "Prometheus monitoring/k8s does not read ServiceMonitors of namespace vision.",
            "Run kubectl label namespace vision watched=yes, or: Set serviceMonitorNamespaceSelector "
            "of the Prometheus: {} reads all namespaces.",
        ),
        (
            _ALL,
            "Prometheus monitoring/k8s reads no ServiceMonitors.",
            "Set serviceMonitorSelector of the Prometheus: {} reads all.",
        ),
    ],
)
def test_what_is_not_read_is_a_warning_with_its_fix(
    world: World, spec: dict[str, Any], detail: str, fix: str
) -> None:
    _with(spec)

    check, _ = _checked(world)

    assert (check.ok, check.is_blocking, check.detail, check.fix) == (False, False, detail, fix)


def test_a_label_of_the_live_namespace_is_read(world: World) -> None:
    _with(_RELEASE | _WATCHED)
    metadata = {"name": "vision", "labels": {"watched": "yes"}}
    world.cluster.objects["Namespace", "", "vision"] = {"metadata": metadata}

    assert _checked(world)[0].ok is True


def test_without_a_prometheus_or_permission_nothing_is_promised(world: World) -> None:
    _with()
    nothing, _ = _checked(world)
    _with(None)
    unknown, labels = _checked(world)

    assert (nothing.ok, nothing.fix) == (
        False,
        "Create a Prometheus of the operator, or turn service_monitor off.",
    )
    assert unknown.ok is None
    assert "manage.py cluster_rbac" in unknown.fix
    assert "release" not in labels
