"""A notebook's way through the registry, over HTTP."""

from __future__ import annotations

import hashlib

import pytest
from django.test import Client

from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from tests import plain_http
from tests.deployments import onnx_models
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db


def test_upload_verify_alias_archive(people: People, s3_store: S3Store, client: Client) -> None:
    client.force_login(people.member)
    body = onnx_models.linear()
    sha256 = hashlib.sha256(body).hexdigest()

    started = client.post(
        "/api/v1/models/vision/detector/versions",
        {
            "files": [{"path": "detector.onnx", "size_bytes": len(body), "sha256": sha256}],
            "metadata": {"accuracy": 0.914, "labels": {"edge": ""}},
        },
        content_type="application/json",
    )
    assert started.status_code == 201, started.content
    version = started.json()
    assert (version["state"], version["number"]) == ("uploading", 1)
    assert [(file["path"], file["part_count"]) for file in version["files"]] == [
        ("detector.onnx", 1)
    ]
    at = f"/api/v1/versions/{version['id']}"

    assert client.get(f"{at}/parts").json()["missing"] == [1]
    signed = client.post(f"{at}/parts", {"numbers": [1]}, content_type="application/json").json()
    plain_http.client.put(
        signed[0]["url"], content=body, headers=signed[0]["headers"]
    ).raise_for_status()
    assert client.get(f"{at}/parts").json()["missing"] == []
    assert (
        client.post(f"{at}/complete", content_type="application/json").json()["state"]
        == "verifying"
    )
    verification.advance(version["id"])

    ready = client.get(at).json()
    assert ready["state"] == "ready"
    assert ready["sha256"] == sha256
    assert ready["signature"]["max_batch_size"] == 32
    assert ready["storage_uri"].startswith(
        f"s3://{s3_store.bucket}/repositories/vision/detector/1/"
    )

    alias = client.put(
        "/api/v1/models/vision/detector/aliases/staging",
        {"version": 1},
        content_type="application/json",
    )
    assert alias.json()["version"] == 1
    model = client.get("/api/v1/models", {"label": "edge"}).json()["results"][0]
    assert [a["name"] for a in model["aliases"]] == ["staging"]
    refused = client.post(f"{at}/archive", {}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "still_aliased")
    assert client.delete("/api/v1/models/vision/detector/aliases/staging").status_code == 204
    archived = client.post(f"{at}/archive", {}, content_type="application/json")
    assert archived.json()["state"] == "archived"
    assert client.post(f"{at}/restore", content_type="application/json").json()["state"] == "ready"
    again = client.post(
        "/api/v1/models/vision/detector/versions",
        {"files": [{"path": "detector.onnx", "size_bytes": len(body), "sha256": sha256}]},
        content_type="application/json",
    )
    assert (again.status_code, again.json()["code"]) == (409, "same_bytes")
