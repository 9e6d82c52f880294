"""The claim that is to keep a deployment's models."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Storage
from portal.core.errors import Invalid
from tests.deployments.refusals import refused
from tests.deployments.world import World

_STORAGE = Storage(model_cache="volume", volume_claim="models")


def _claim(world: World, *modes: str, phase: str = "Bound") -> None:
    world.cluster.objects["PersistentVolumeClaim", "vision", "models"] = {
        "metadata": {},
        "spec": {"accessModes": list(modes)},
        "status": {"phase": phase},
    }


def _checked(world: World) -> tuple[Check, bool]:
    result = preflight.check(actor=world.member, draft=world.draft(storage=_STORAGE))
    (check,) = [check for check in result.checks if check.name == "Model cache"]
    return check, result.can_submit


def test_a_shared_claim_is_accepted(world: World) -> None:
    _claim(world, "ReadWriteOnce", "ReadWriteMany")

    check, can_submit = _checked(world)

    assert (check.ok, can_submit) == (True, True)
    assert "bound and shared" in check.detail


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (None, "PersistentVolumeClaim models of vision does not exist"),
        ({"modes": ["ReadWriteOnce"]}, "is ReadWriteOnce, so pods cannot share it"),
        ({"modes": ["ReadWriteMany"], "phase": "Lost"}, "has lost its volume"),
    ],
)
def test_a_claim_that_pods_cannot_share_is_refused(
    world: World, claim: dict[str, Any] | None, problem: str
) -> None:
    if claim is not None:
        _claim(world, *claim["modes"], phase=claim.get("phase", "Bound"))

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(storage=_STORAGE))

    assert problem in raised[0].message


def test_a_claim_that_binds_with_its_first_pod_is_a_warning(world: World) -> None:
    _claim(world, "ReadWriteMany", phase="Pending")

    check, can_submit = _checked(world)

    assert (check.ok, check.is_blocking, can_submit) == (None, False, True)
    assert "WaitForFirstConsumer" in check.fix


def test_without_a_claim_nothing_is_checked(world: World) -> None:
    result = preflight.check(actor=world.member, draft=world.draft())

    assert "Model cache" not in {check.name for check in result.checks}
