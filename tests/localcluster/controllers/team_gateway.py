"""A real Envoy with a team's address as the portal writes it, in front of two real servers with random weights,
where vLLM would run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.access.domain.callers import Callers
from deployments.access.domain.kinds import keys as caller_kind
from deployments.manifests.domain import http_route
from deployments.manifests.domain.access import caller_keys, team_address
from deployments.manifests.domain.access.team_script import RoutedDeployment
from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain.serving_spec import ServingSpec
from slipway_localcluster.controllers import (
    conditions,
    free_ports,
    language_container,
)
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.controllers.pod_runner import PORT_ANNOTATION
from slipway_localcluster.kinds import (
    BACKEND_TRAFFIC_POLICY,
    ENVOY_EXTENSION_POLICY,
    HTTP_ROUTE,
    NAMESPACE,
    POD,
    SECRET,
    SECURITY_POLICY,
    SERVICE,
    Kind,
)
from slipway_localcluster.store import Store
from tests import plain_http
from tests.localcluster.controllers import language_models, manifests
from tests.localcluster.controllers.test_mirror import _envoy
from tests.waiting import wait_for

KEYS = {"chat": {"billing.1": "key-of-chat"}, "code": {"search.2": "key-of-code"}}
_OF_THE_ADDRESS = (SECURITY_POLICY, BACKEND_TRAFFIC_POLICY, ENVOY_EXTENSION_POLICY, HTTP_ROUTE)
CHAT = "/vision/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "temperature": 0}


def context(name: str) -> ManifestContext:
    return replace(language_models.CONTEXT, deployment=name)


def _spec(*, team_address: bool = True) -> ServingSpec:
    return ServingSpec.from_json(
        {
            "engine": "kserve-vllm",
            "instance_type": "g5.xlarge",
            "llm": {"hugging_face_id": "org/model"},
            "network": {"access": "keys", "team_address": team_address},
        }
    )


def route(name: str, *, team_address: bool = True) -> dict[str, Any]:
    backend = http_route.backend_for(1, _spec(team_address=team_address), 100, model=name)
    return http_route.http_route(context(name), [backend])


def write_address(store: Store, names: list[str]) -> None:
    members = [RoutedDeployment(name, (name,)) for name in names]
    kinds = {kind.kind: kind for kind in _OF_THE_ADDRESS}
    for manifest in team_address.manifests(context("chat"), members):
        write(store, kinds[manifest["kind"]], manifest)


def write(store: Store, kind: Kind, manifest: dict[str, Any]) -> None:
    live = store.find(kind, "vision", manifest["metadata"]["name"])
    content = {key: manifest[key] for key in ("spec", "data") if key in manifest}
    if live is None:
        store.create(kind, manifest)
    else:
        store.replace(kind, live | content)


def _pod_of(store: Store, name: str, port: int) -> None:
    labels = {"app": name}
    ports = [{"port": 80, "targetPort": 8080}]
    service = {"name": f"{name}-r1-predictor", "namespace": "vision"}
    store.create(SERVICE, {"metadata": service, "spec": {"selector": labels, "ports": ports}})
    pod = manifests.pod(name)
    pod["metadata"] |= {"labels": labels, "annotations": {f"{PORT_ANNOTATION}8080": str(port)}}
    created = store.create(POD, pod)
    ready = conditions.condition("Ready", conditions.TRUE)
    store.replace_status(POD, created | {"status": {"conditions": [ready]}})


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, int]]:
    """The ports of two language models, by name."""
    ports = dict(zip(KEYS, free_ports.take(2), strict=True))
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "slipway_localcluster.language_server",
                "org/model",
                f"--served-model-name={name}",
                f"--port={port}",
            ],
            env=dict(language_container.environment()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, port in ports.items()
    ]

    def are_up() -> bool:
        addresses = [f"http://127.0.0.1:{port}/health" for port in ports.values()]
        try:
            return all(
                plain_http.client.get(url, timeout=5).status_code == 200 for url in addresses
            )
        except httpx.TransportError:
            return False

    wait_for("the language servers answer", are_up)
    yield ports
    for process in running:
        process.terminate()
        process.wait()


@pytest.fixture
def gateway(
    tmp_path: Path, store: Store, servers: dict[str, int]
) -> Iterator[tuple[GatewayController, httpx.Client]]:
    with running(tmp_path, store, servers) as (controller, client):
        wait_for(
            "the gateway answers", lambda: ask(client, "key-of-chat", "chat").status_code == 200
        )
        yield controller, client


@contextmanager
def running(
    tmp_path: Path, store: Store, servers: dict[str, int]
) -> Iterator[tuple[GatewayController, httpx.Client]]:
    port = free_ports.take_one()
    controller = GatewayController(store, data_dir=tmp_path, port=port)
    controller.seed()
    store.create(NAMESPACE, manifests.namespace())
    for name, keys in KEYS.items():
        _pod_of(store, name, servers[name])
        store.create(HTTP_ROUTE, route(name))
        store.create(SECRET, caller_keys.secret(context(name), keys))
        store.create(SECRET, team_address.secret(context(name), keys))
        callers = Callers(secret=caller_keys.secret_name(name))
        policy = caller_keys.policy(context(name), caller_kind.KIND.security(callers))
        store.create(SECURITY_POLICY, policy)
    write_address(store, list(KEYS))
    controller.reconcile()
    base = f"http://127.0.0.1:{port}"
    with _envoy(tmp_path, port), httpx.Client(base_url=base, timeout=20, verify=False) as client:
        yield controller, client


def ask(client: httpx.Client, key: str, model: str, **body: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return client.post(CHAT, json={"model": model, **HELLO, **body}, headers=headers)


def listed(client: httpx.Client, key: str) -> list[str]:
    answer = client.get("/vision/v1/models", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    return [row["id"] for row in answer.json()["data"]]


def own(client: httpx.Client) -> int:
    body = {"model": "code", **HELLO}
    return client.post("/vision/code/v1/chat/completions", json=body).status_code
