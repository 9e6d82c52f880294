"""The tab Callers says when the gateway does not follow the portal's policies."""

from __future__ import annotations

import pytest

from fleet.kube.domain.errors import Unreachable
from tests.deployments.callers.test_keys import keyed, make
from tests.deployments.callers.test_page_and_rest import signed_in
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_TAB = "/vision/deployments/detector/callers"
_CONFLICT = "Unable to target HTTPRoute detector, another one has already attached to it."


def reports(world: World, kind: str, status: str, reason: str, message: str) -> None:
    condition = {"type": "Accepted", "status": status, "reason": reason, "message": message}
    policy = world.cluster.objects[kind, "vision", "detector"]
    policy["status"] = {"ancestors": [{"conditions": [condition]}]}


def shown(world: World) -> str:
    return page(signed_in(world.member).get(_TAB)).text


@pytest.mark.parametrize(
    ("kind", "reason", "message", "sentence"),
    [
        ("SecurityPolicy", "Conflicted", _CONFLICT, "keys are not checked"),
        ("BackendTrafficPolicy", "Conflicted", _CONFLICT, "limits of keys are not enforced"),
        ("SecurityPolicy", "Invalid", "secret not found", "answers 500 to everyone"),
    ],
)
def test_a_policy_that_does_not_hold_is_explained(
    world: World, kind: str, reason: str, message: str, sentence: str
) -> None:
    make(world, keyed(world), requests_per_minute=5)
    for other in ("SecurityPolicy", "BackendTrafficPolicy"):
        reports(world, other, "True", "Accepted", "Policy has been accepted.")
    before = shown(world)

    reports(world, kind, "False", reason, message)

    assert "The gateway reports" not in before
    assert sentence in shown(world)
    assert f"The gateway reports: {message}" in shown(world)


def test_without_an_answer_of_the_cluster_it_is_not_known(world: World) -> None:
    make(world, keyed(world))
    world.cluster.fail_with = Unreachable("timed out")

    assert "it is not known whether the gateway checks keys: timed out" in shown(world)


def test_an_open_address_asks_the_cluster_nothing(world: World) -> None:
    make(world, world.serving())
    world.cluster.fail_with = Unreachable("timed out")

    assert "not known" not in shown(world)
