"""Limits of callers, and policies that contend for a route, through a real Envoy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.manifests.domain.access import limit_rules
from deployments.manifests.domain.access.limit_rules import ClientLimit
from slipway_localcluster.controllers import free_ports, rate_limits
from slipway_localcluster.controllers.envoy_config import Endpoint
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.kinds import BACKEND_TRAFFIC_POLICY, HTTP_ROUTE, SECRET, SECURITY_POLICY
from slipway_localcluster.store import Store
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.test_api_keys import (
    _POLICY,
    _secret,
    _serve,
    model,
)
from tests.localcluster.controllers.test_mirror import _envoy
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


def test_callers_that_share_a_rule_are_counted_each_by_itself(
    tmp_path: Path, store: Store, model: Endpoint
) -> None:
    """The rules that the portal writes for more callers than a policy has rules."""
    clients = [f"caller-{number}.{number}" for number in range(1, 401)]
    limits = {name: ClientLimit(4) for name in clients} | {"free.999": ClientLimit(is_paused=True)}
    planned = limit_rules.rules_of(limits, header="slipway-caller", are_numbered=True)
    policy = _limits()
    policy["spec"]["rateLimit"]["local"]["rules"] = list(planned.rules)
    port = free_ports.take_one()
    gateway = GatewayController(store, data_dir=tmp_path, port=port)
    gateway.seed()
    _serve(store, model, "one")
    store.create(HTTP_ROUTE, manifests.route({"one": 100}))
    keys = {"caller-1.1": "one", "caller-400.400": "last", "free.999": "paused", "other.4000": "no"}
    store.create(SECRET, _secret(**keys))
    store.create(SECURITY_POLICY, _POLICY)
    store.create(BACKEND_TRAFFIC_POLICY, policy)
    gateway.reconcile()
    url = f"http://127.0.0.1:{port}/vision/digits/v2"

    with _envoy(tmp_path, port), httpx.Client(timeout=10) as client:

        def send(key: str) -> int:
            return client.get(url, headers={"x-api-key": key}).status_code

        def is_limited() -> bool:
            sent = client.get(url, headers={"x-api-key": "paused"})
            return sent.status_code == 429

        wait_for("the pause holds", is_limited)
        answers = {key: [send(key) for _ in range(6)] for key in ("one", "last")}
        others = [send("no") for _ in range(6)]

    assert len(planned.rules) <= 16
    assert answers == {key: [200] * 4 + [429] * 2 for key in ("one", "last")}
    assert others == [200] * 6


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
    assert rate_limits.read_policy({"spec": spec}).problem
