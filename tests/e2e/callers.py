"""Callers of a deployment that asks for keys: what the gateway answers to each, and how soon."""

from __future__ import annotations

import time
from typing import Any

from tests import plain_http
from tests.e2e.canaries import MODEL, Scene
from tests.fixtures import onnx_models
from tests.fixtures.load import body_of
from tests.waiting import wait_for

ANSWERED, NO_KEY, OVER_LIMIT = 200, 401, 429
# What callers are promised after a key is made or revoked.
PROMISED_SECONDS = 5.0


def headers_of(key: str) -> dict[str, str]:
    return {"x-api-key": key}


def make_key(scene: Scene, caller: str, **more: Any) -> dict[str, Any]:
    """By the lead. The answer holds the key."""
    body = {"caller": caller, "contact": "ana@example.org", **more}
    return dict(scene.lead.post(f"deployments/{scene.deployment['id']}/callers", body))


def change_key(scene: Scene, key: dict[str, Any], action: str, **more: Any) -> dict[str, Any]:
    """Rotate, limit or revoke it."""
    path = f"deployments/{scene.deployment['id']}/callers/{key['id']}/{action}"
    return dict(scene.lead.post(path, more))


def ask(scene: Scene, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Status, and what the model answered to always the same request."""
    url = f"{scene.deployment['url']}/v2/models/{MODEL}/infer"
    body = body_of([0.0] + [0.25] * (onnx_models.WIDTH - 1))
    answer = plain_http.client.post(url, json=body, headers=headers)
    scene.answered[(headers or {}).get("x-api-key", "")] += answer.is_success
    outputs = answer.json()["outputs"] if answer.is_success else answer.text
    return answer.status_code, str(outputs)


def seconds_until(scene: Scene, status: int, key: dict[str, Any]) -> float:
    """From now until the gateway answers the key so."""
    began = time.monotonic()
    wait_for(f"{status} for a key", lambda: ask(scene, headers_of(key["key"]))[0] == status)
    return time.monotonic() - began


def seconds_until_limited(scene: Scene, key: dict[str, Any], most: int) -> float:
    """From now until a request over so many a minute is refused."""
    change_key(scene, key, "limit", requests_per_minute=most)
    return seconds_until(scene, OVER_LIMIT, key)


def requests_counted(scene: Scene, caller: str) -> int:
    """What the portal says that the caller sent to the deployment this month."""
    listed = scene.lead.get(f"teams/vision/caller-costs?deployment={scene.name}")["results"]
    return sum(row["requests"] for row in listed if row["caller"] == caller)
