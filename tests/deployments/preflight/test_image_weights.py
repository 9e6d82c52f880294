"""Weights in an image are refused where the namespace's Pod Security would refuse their container."""

from __future__ import annotations

import pytest

from deployments.changes.services import requests
from deployments.models import ChangeRequest
from deployments.preflight.domain.checks import Check
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster
from portal.core.errors import Invalid
from tests.deployments.external_weights import IMAGE, checked, draft, language_cluster, register
from tests.deployments.world import World

__all__ = ["language_cluster"]
pytestmark = pytest.mark.usefixtures("language_cluster")
_NAME = "Weights in an image"


def read(feature: Feature, *, pod_security: str = "") -> None:
    features = {name: Feature(name != "kserve-knative") for name in FEATURE_DESCRIPTIONS}
    features["image-weights"] = feature
    Cluster.objects.update(
        capabilities=Capabilities(features=features).to_json(),
        serving={"allowed_images": ["ghcr.io/org/*"], "pod_security": pod_security},
    )


def check_of(world: World) -> Check:
    result = checked(world, register(world, IMAGE))
    return next(check for check in result.checks if check.name == _NAME)


def test_a_container_of_the_image_is_refused_under_restricted_and_nothing_is_made(
    world: World,
) -> None:
    read(Feature(is_there=True, version="modelcar"))

    with pytest.raises(Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=draft(world, register(world, IMAGE)))

    refusal = raised.value.fields["llm.artifact"]
    assert "enforce Pod Security restricted, which refuses the container that KServe" in refusal
    assert "ociModelMode native" in refusal
    assert not ChangeRequest.objects.exists()
    assert not [call for call in world.cluster.calls if call[0] == "apply"]


@pytest.mark.parametrize(
    ("version", "pod_security", "detail"),
    [
        ("modelcar", "baseline", "starts a container from the image."),
        ("native", "restricted", "mounts the image."),
    ],
)
def test_where_its_pods_are_admitted_it_passes(
    world: World, version: str, pod_security: str, detail: str
) -> None:
    read(Feature(is_there=True, version=version), pod_security=pod_security)

    check = check_of(world)

    assert check.ok
    assert check.detail.endswith(detail)


def test_where_kserve_has_it_switched_off_the_setting_is_named(world: World) -> None:
    read(Feature(is_there=False, why="KServe has images of weights switched off"))

    check = check_of(world)

    assert check.is_refusal
    assert check.detail.startswith("KServe has images of weights switched off.")
    assert "enableModelcar" in check.fix


def test_what_cannot_be_read_is_unknown_and_refuses_nothing(world: World) -> None:
    read(Feature(None, why="The portal cannot read it."))

    assert check_of(world).ok is None


def test_other_weights_have_no_such_check(world: World) -> None:
    read(Feature(is_there=False))

    result = checked(world, register(world))

    assert _NAME not in {check.name for check in result.checks}
