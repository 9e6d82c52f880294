"""Fields of a pod that Knative refuses are refused before the request, with the flag's name."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.manifests.domain import knative
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Placement, Scaling
from fleet.clusters.domain import knative_flags
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster
from portal.core.errors import Invalid
from tests.deployments.refusals import refused
from tests.deployments.world import World

_KNATIVE: Any = {"scaling": Scaling(kind="knative"), "max_replicas": 2}
_ON = dict.fromkeys(knative_flags.ALWAYS_NEEDED, "enabled")


def _with(flags: dict[str, str] | None) -> None:
    features = {name: Feature(is_there=True) for name in ("kubernetes", "kserve", "kserve-knative")}
    Cluster.objects.update(capabilities=Capabilities(features, knative_flags=flags).to_json())


def _checked(world: World, **changed: Any) -> Check:
    result = preflight.check(actor=world.member, draft=world.draft(**_KNATIVE, **changed))
    (check,) = [check for check in result.checks if check.name == "Knative"]
    return check


def test_pods_that_knative_allows_pass(world: World) -> None:
    _with(_ON)

    assert _checked(world).ok is True


@pytest.mark.parametrize(
    ("placement", "flag", "field"),
    [
        ({"priority_class": "high"}, "kubernetes.podspec-priorityclassname", "priorityClassName"),
        ({"capacity": "spot"}, "kubernetes.podspec-affinity", "affinity"),
    ],
)
def test_a_placement_that_knative_refuses_is_refused_with_the_flag(
    world: World, placement: dict[str, Any], flag: str, field: str
) -> None:
    _with({name: value for name, value in _ON.items() if name != flag})
    changed: dict[str, Any] = {"placement": Placement(**placement)}

    check = _checked(world, **changed)
    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(**_KNATIVE, **changed))
    _with(_ON | {flag: "enabled"})

    assert check.is_refusal
    assert check.detail.endswith(f"refuses pods with {field}.")
    assert f"set {flag} to enabled in ConfigMap config-features of knative-serving" in check.fix
    assert flag in raised[0].fields["scaling"]
    assert _checked(world, **changed).ok is True


def test_flags_that_may_not_be_read_refuse_nothing(world: World) -> None:
    _with(None)

    check = _checked(world)

    assert (check.ok, check.is_blocking) == (None, False)
    assert (
        "allows affinity, emptyDir, initContainers, nodeSelector, tolerations is not known"
        in check.detail
    )


def test_another_autoscaler_needs_no_flag(world: World) -> None:
    _with({})

    result = preflight.check(actor=world.member, draft=world.draft())

    assert "Knative" not in {check.name for check in result.checks}


def test_init_containers_and_claims_need_their_flags() -> None:
    predictor = {
        "initContainers": [{"name": "storage-initializer"}],
        "volumes": [{"name": "w", "persistentVolumeClaim": {"claimName": "w"}}],
        "tolerations": [],
    }
    manifests: list[dict[str, Any]] = [
        {"kind": "InferenceService", "spec": {"predictor": predictor}},
        {"kind": "Namespace"},
    ]

    assert knative.needed_flags(manifests) == {
        "kubernetes.podspec-init-containers": "initContainers",
        "kubernetes.podspec-persistent-volume-claim": "persistentVolumeClaim",
        "kubernetes.podspec-persistent-volume-write": "persistentVolumeClaim",
    }
