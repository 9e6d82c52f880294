"""From an ONNX file to answers, by REST only; and what others can see of it then."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from tests import plain_http
from tests.e2e.demo_process import ROOT, DemoProcess
from tests.e2e.notebooks import run_notebook
from tests.e2e.rest import Classifier, Person
from tests.waiting import PATIENCE_SECONDS, wait_for

FILES = {
    "python": ROOT / "manage.py",
    "markdown": ROOT / "tests" / "e2e" / "data" / "sample.md",
    "css": ROOT / "static" / "css" / "slipway.css",
    "yaml": ROOT / "docker-compose.yml",
    "elf": Path(os.path.realpath(sys.executable)),
}


@pytest.mark.parametrize("kind", FILES)
def test_deployed_model_knows_real_files(kind: str, classifier: Classifier) -> None:
    assert classifier.kind_of(FILES[kind].read_bytes()) == kind


def test_tritonclient_gets_the_same_answer_over_http_and_grpc(
    demo: DemoProcess, served: dict[str, Any], classifier: Classifier
) -> None:
    content = FILES["python"].read_bytes()
    host, _, deployment = served["url"].removeprefix("http://").partition("/")
    headers = {"slipway-deployment": deployment}
    features = np.array([classifier.features(content)], dtype=np.int32)

    for triton, address in ((triton_http, f"{host}/{deployment}"), (triton_grpc, host)):
        with triton.InferenceServerClient(address) as client:
            tensor = triton.InferInput("bytes", features.shape, "INT32")
            tensor.set_data_from_numpy(features)
            # The client over HTTP adds headers of its own to the dict that it is given.
            answer = client.infer("filetype", [tensor], headers=dict(headers))
            scores = answer.as_numpy("target_label")[0]
            assert classifier.labels[int(scores.argmax())] == "python"


def test_served_bytes_are_the_uploaded_bytes(
    demo: DemoProcess, member: Person, version: dict[str, Any]
) -> None:
    content = (demo.samples / "filetype.onnx").read_bytes()

    assert version["sha256"] == hashlib.sha256(content).hexdigest()
    assert member.get(f"versions/{version['id']}/files")[0]["s3_version_id"]
    assert version["metadata"]["metrics"]["accuracy"] == pytest.approx(0.99)


def test_kubectl_sees_what_the_portal_made(
    demo: DemoProcess, member: Person, served: dict[str, Any]
) -> None:
    def kubectl(*arguments: str) -> str:
        command = [str(Path(sysconfig.get_path("scripts")) / "kubectl"), *arguments]
        environment = {**os.environ, "KUBECONFIG": str(demo.kubeconfig)}
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    objects = json.loads(
        kubectl("get", "inferenceservices,httproutes", "-n", "vision", "-o", "json")
    )
    pods = kubectl("get", "pods", "-n", "vision", "-l", "slipway.dev/deployment=filetype")

    names = {(item["kind"], item["metadata"]["name"]) for item in objects["items"]}
    # Other tests may have moved it on to a later revision.
    workload = member.get(f"deployments/{served['id']}")["desired"]["stable"]["workload_name"]
    assert ("InferenceService", workload) in names
    assert ("HTTPRoute", "filetype") in names
    assert all(
        item["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "slipway"
        for item in objects["items"]
    )
    assert "Running" in pods
    kubectl("wait", "--for=condition=Ready", f"inferenceservice/{workload}", "-n", "vision")
    assert kubectl("describe", "inferenceservice", workload, "-n", "vision")


def test_requests_and_dollars_are_counted(
    member: Person, served: dict[str, Any], classifier: Classifier
) -> None:
    for _ in range(20):
        classifier.kind_of(b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n")

    def row_of(path: str) -> dict[str, Any] | None:
        page = member.try_get(f"{path}?group_by=deployment") or {"results": []}
        rows = page["rows"] if "rows" in page else page["results"]
        return next((row for row in rows if row["key"]["deployment"] == "filetype"), None)

    def counted() -> dict[str, Any] | None:
        row = row_of("usage")
        return row if row and row["requests"] >= 20 else None

    def priced() -> dict[str, Any] | None:
        row = row_of("costs")
        return row if row and Decimal(row["estimated_amount"]) > 0 else None

    assert wait_for("requests of the deployment", counted)["failures"] == 0
    assert Decimal(wait_for("cost of the deployment", priced)["gpu_hours"]) > 0


def test_notebook_runs_from_top_to_bottom(demo: DemoProcess, member: Person, lead: Person) -> None:
    output = run_notebook(
        ROOT / "docs" / "notebooks" / "quickstart.ipynb",
        SLIPWAY_URL=demo.url,
        SLIPWAY_TOKEN=member.token,
        SLIPWAY_LEAD_TOKEN=lead.token,
        SLIPWAY_SAMPLES=str(demo.samples),
        SLIPWAY_NAME="from-notebook",
    )

    assert "manage.py is python" in output
    member.retire(member.deployment_named("from-notebook")["id"], approved_by=lead)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.onnx", b"these bytes are no model at all", "ONNX"),
        ("cut.onnx", None, "ONNX"),
    ],
    ids=["no model", "truncated model"],
)
def test_file_that_is_no_model_is_refused_and_serves_nothing(
    name: str,
    content: bytes | None,
    message: str,
    demo: DemoProcess,
    member: Person,
    tmp_path: Path,
) -> None:
    file = tmp_path / name
    file.write_bytes(content or (demo.samples / "filetype.onnx").read_bytes()[:100_000])
    started = member.send("broken", file)

    def ended() -> dict[str, Any] | None:
        version = member.get(f"versions/{started['id']}")
        return None if version["state"] in {"uploading", "verifying"} else version

    version = wait_for("verdict about the file", ended)

    assert version["state"] == "failed"
    assert message in version["state_reason"]
    assert version["storage_uri"] == ""


def test_wrong_checksum_is_detected_by_the_portal(
    demo: DemoProcess, member: Person, tmp_path: Path
) -> None:
    file = demo.samples / "filetype.onnx"
    promised = {"path": file.name, "size_bytes": file.stat().st_size, "sha256": "0" * 64}
    body = {"files": [promised]}
    started = member.post("models/vision/wrong-sum/versions", body)
    (part,) = member.post(f"versions/{started['id']}/parts", {"numbers": [1]})
    plain_http.client.put(
        part["url"], content=file.read_bytes(), headers=part["headers"]
    ).raise_for_status()
    member.post(f"versions/{started['id']}/complete")

    def failed() -> dict[str, Any] | None:
        version = member.get(f"versions/{started['id']}")
        return version if version["state"] == "failed" else None

    assert "SHA-256" in wait_for("refusal", failed)["state_reason"]


def test_more_gpus_than_the_quota_are_refused(member: Person, version: dict[str, Any]) -> None:
    body = {
        "version_id": version["id"],
        "cluster_id": 1,
        "name": "too-large",
        "spec": {
            "engine": "triton",
            "instance_type": "g4dn.12xlarge",
            "min_replicas": 9,
            "max_replicas": 9,
            "network": {"access": "open"},
        },
    }

    answer = member.http.post("deployments", json=body)

    assert answer.status_code == 422
    assert "quota" in answer.json()["detail"].lower()
    names = [deployment["name"] for deployment in member.get("deployments")["results"]]
    assert "too-large" not in names


def test_name_that_kubernetes_refuses_is_refused(member: Person, version: dict[str, Any]) -> None:
    body = {
        "version_id": version["id"],
        "cluster_id": 1,
        "name": "My_Model",
        "spec": {
            "engine": "triton",
            "instance_type": "g4dn.12xlarge",
            "network": {"access": "open"},
        },
    }

    answer = member.http.post("deployments", json=body)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert "name" in [error["field"] for error in answer.json()["errors"]]
