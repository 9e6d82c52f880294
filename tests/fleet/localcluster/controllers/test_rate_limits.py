"""Limits of callers, and policies that contend for a route, through a real Envoy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet.localcluster.controllers import free_ports, rate_limits
from fleet.localcluster.controllers.envoy_config import Endpoint
from fleet.localcluster.controllers.gateway import GatewayController
from fleet.localcluster.kinds import BACKEND_TRAFFIC_POLICY, HTTP_ROUTE, SECRET, SECURITY_POLICY
from fleet.localcluster.store import Store
from tests.fleet.localcluster.controllers import manifests
from tests.fleet.localcluster.controllers.test_api_keys import (
    _POLICY,
    _secret,
    _serve,
    model,
)
from tests.fleet.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

__all__ = ["model"]
_TARGETS = _POLICY["spec"]["targetRefs"]


def _limits(name: str = "digits", **most: int) -> dict[str, Any]:
    rules = [
        {
            "clientSelectors": [{"headers": [{"name": "slipway-caller", "value": client}]}],
            "limit": {"requests": requests, "unit": "Hour"},
        }
        for client, requests in most.items()
    ]
    return {
        "metadata": {"name": name, "namespace": "vision"},
        "spec": {
            "targetRefs": _TARGETS,
            "mergeType": "StrategicMerge",
            "rateLimit": {"type": "Local", "local": {"rules": rules}},
        },
    }


def test_a_caller_over_its_limit_gets_429_and_nobody_else_does(
    tmp_path: Path, store: Store, model: Endpoint
) -> None:
    port = free_ports.take_one()
    gateway = GatewayController(store, data_dir=tmp_path, port=port)
    gateway.seed()
    _serve(store, model, "one")
    store.create(HTTP_ROUTE, manifests.route({"one": 100}))
    store.create(SECRET, _secret(billing="first", search="second"))
    store.create(SECURITY_POLICY, _POLICY)
    store.create(BACKEND_TRAFFIC_POLICY, _limits(billing=5))
    gateway.reconcile()
    url = f"http://127.0.0.1:{port}/vision/digits/v2"

    with _envoy(tmp_path, port), httpx.Client(timeout=10) as client:

        def send(key: str, **headers: str) -> httpx.Response:
            return client.get(url, headers={"x-api-key": key, **headers})

        wait_for("the other caller is served", lambda: send("second").status_code == 200)
        # Who pretends to be another caller is counted as itself, and refused requests cost nothing.
        unknown = [send("third", **{"slipway-caller": "billing"}).status_code for _ in range(20)]
        limited = [send("first", **{"slipway-caller": "search"}) for _ in range(8)]
        others = [send("second", **{"slipway-caller": "billing"}).status_code for _ in range(20)]
        live = store.get(BACKEND_TRAFFIC_POLICY, "vision", "digits")
        store.replace(BACKEND_TRAFFIC_POLICY, live | {"spec": _limits(billing=500)["spec"]})
        gateway.reconcile()
        wait_for("a higher limit holds", lambda: send("first").status_code == 200)

    assert unknown == [401] * 20
    assert [answer.status_code for answer in limited] == [200] * 5 + [429] * 3
    assert limited[0].headers["x-ratelimit-remaining"] == "4"
    assert others == [200] * 20
    policy = store.get(BACKEND_TRAFFIC_POLICY, "vision", "digits")
    (ancestor,) = policy["status"]["ancestors"]
    assert ancestor["conditions"][0]["reason"] == "Accepted"


def test_of_two_policies_for_a_route_the_older_holds_and_the_younger_says_so(
    tmp_path: Path, store: Store
) -> None:
    gateway = GatewayController(store, data_dir=tmp_path, port=None)
    gateway.seed()
    _serve(store, Endpoint("127.0.0.1", 1), "one")
    store.create(HTTP_ROUTE, manifests.route({"one": 100}))
    theirs = _POLICY | {"metadata": {"name": "a-theirs", "namespace": "vision"}}
    store.create(SECRET, _secret())
    store.create(SECURITY_POLICY, theirs)
    own = store.create(SECURITY_POLICY, _POLICY)
    elsewhere = {"ancestorRef": {"name": "other"}, "controllerName": "x/y", "conditions": []}
    store.replace_status(SECURITY_POLICY, own | {"status": {"ancestors": [elsewhere]}})
    gateway.reconcile()
    reported = store.get(SECURITY_POLICY, "vision", "digits")["status"]["ancestors"]
    store.delete(SECURITY_POLICY, "vision", "a-theirs")
    gateway.reconcile()
    after = store.get(SECURITY_POLICY, "vision", "digits")["status"]["ancestors"]

    message = (
        "Unable to target HTTPRoute digits, another SecurityPolicy has already attached to it."
    )
    assert [item["controllerName"] for item in reported] == ["x/y", "slipway.dev/local-envoy"]
    told = [items[1]["conditions"][0] for items in (reported, after)]
    assert [(item["status"], item["message"]) for item in told] == [
        ("False", message),
        ("True", "Policy has been accepted."),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"targetRefs": _TARGETS},
        {"targetRefs": _TARGETS, "rateLimit": {"type": "Global", "global": {"rules": []}}},
        {
            "targetRefs": _TARGETS,
            "rateLimit": {"local": {"rules": [{"limit": {"requests": 1, "unit": "Minute"}}]}},
        },
        {
            "targetRefs": _TARGETS,
            "rateLimit": {
                "local": {
                    "rules": [
                        {
                            "clientSelectors": [{"headers": [{"name": "a", "type": "Distinct"}]}],
                            "limit": {"requests": 1, "unit": "Minute"},
                        }
                    ]
                }
            },
        },
    ],
)
def test_a_policy_that_cannot_be_followed_has_a_problem(spec: dict[str, Any]) -> None:
    assert rate_limits.of_policy({"spec": spec}).problem
