"""A model file on its way into the registry, over REST as a notebook sends it."""

from __future__ import annotations

import hashlib
from typing import Any

from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.services import verification
from tests import plain_http


def upload(client: Client, *, team: str, model: str, body: bytes) -> ModelVersion:
    """The bytes go to the S3 server by a presigned URL; then the worker examines them."""
    started = _post(
        client,
        f"/api/v1/models/{team}/{model}/versions",
        {
            "files": [
                {
                    "path": f"{model}.onnx",
                    "size_bytes": len(body),
                    "sha256": hashlib.sha256(body).hexdigest(),
                }
            ]
        },
    )
    at = f"/api/v1/versions/{started['id']}"
    (part,) = _post(client, f"{at}/parts", {"numbers": [1]})
    answer = plain_http.client.put(part["url"], content=body, headers=part["headers"])
    answer.raise_for_status()
    assert _post(client, f"{at}/complete", {})["state"] == "verifying"
    verification.advance(started["id"])
    version: ModelVersion = ModelVersion.objects.get(pk=started["id"])
    assert version.state == "ready", version.state_reason
    return version


def _post(client: Client, path: str, body: dict[str, Any]) -> Any:
    answer = client.post(path, body, content_type="application/json")
    assert answer.status_code < 300, answer.content
    return answer.json()
