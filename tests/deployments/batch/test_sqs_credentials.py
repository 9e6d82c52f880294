"""How a worker gets credentials of AWS, and its client of SQS from the archive in the store."""

from __future__ import annotations

import http.server
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deployments.batch.domain import program
from deployments.batch.domain.sources.sqs.api import SqsApi
from deployments.batch.domain.sources.sqs.kind import SqsKind
from deployments.batch.domain.worker_store import NEVER, WorkerEnded
from tests.deployments.batch.sqs_bench import SqsBench
from tests.fixtures.aws_server import serving_aws

_VARIABLES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
)
_ENDPOINT = "https://sqs.eu-west-1.amazonaws.com"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


def keys_of(api: SqsApi) -> tuple[str, str, str]:
    """The keys that the client signs its next request with."""
    found = api.client._get_credentials().get_frozen_credentials()
    return (found.access_key, found.secret_key, found.token)


@pytest.mark.usefixtures("empty")
def test_the_role_of_the_service_account_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("a.web.token")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/vision-models")
    with serving_aws("sts") as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", address)
        key_id, secret, session = keys_of(SqsApi(_ENDPOINT, "eu-west-1"))
    assert (key_id[:4], bool(secret), bool(session)) == ("ASIA", True, True)


@pytest.mark.usefixtures("empty")
def test_a_role_that_is_not_given_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("a.web.token")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/vision-models")
    with refusing_sts() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", address)
        with pytest.raises(WorkerEnded) as ended:
            SqsApi(_ENDPOINT, "eu-west-1").call("receive_message", QueueUrl=f"{_ENDPOINT}/1/q")
    assert ended.value.code == 1
    assert str(ended.value) == (
        "AWS gives the pod no credentials: AccessDenied: Not authorized to perform this"
    )


@contextmanager
def refusing_sts() -> Iterator[str]:
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = (
                b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>"
                b"<Message>Not authorized to perform this</Message></Error></ErrorResponse>"
            )
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with serving(Refusing) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[int]:
    server = http.server.HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pod_identity(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """What EKS Pod Identity answers to who has the token."""

    class Agent(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.headers["Authorization"] == "the-token"
            found = {
                "AccessKeyId": "ASIAPOD",
                "SecretAccessKey": "s",
                "Token": "t",
                "Expiration": "2126-01-01T00:00:00Z",
            }
            self.send_response(200 if is_known else 403)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode() if is_known else b"no")

        def log_message(self, *_: object) -> None: ...

    file = tmp_path / "identity"
    file.write_text("the-token")
    with serving(Agent) as port:
        yield f"http://127.0.0.1:{port}/v1/credentials", file


@pytest.mark.usefixtures("empty")
def test_eks_pod_identity_gives_them(
    pod_identity: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, file = pod_identity
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(file))
    assert keys_of(SqsApi(_ENDPOINT, "eu-west-1")) == ("ASIAPOD", "s", "t")

    file.write_text("another")
    with pytest.raises(WorkerEnded, match=r"AWS gives the pod no credentials: .* 403"):
        SqsApi(_ENDPOINT, "eu-west-1")


@pytest.mark.usefixtures("empty")
def test_a_pod_without_any_says_what_to_do_and_does_not_take_those_of_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Node(http.server.BaseHTTPRequestHandler):
        asked: list[str] = []

        def do_PUT(self) -> None:
            self.asked.append(self.path)
            self.send_error(500)

        def log_message(self, *_: object) -> None: ...

    with serving(Node) as port:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{port}")
        with pytest.raises(WorkerEnded) as ended:
            SqsApi(_ENDPOINT, "eu-west-1").call("receive_message", QueueUrl=f"{_ENDPOINT}/1/q")
    assert ended.value.code == NEVER
    assert "give the role of the team's models access to the queue, or name a Secret" in str(
        ended.value
    )
    assert Node.asked == []


def run_pod(bench: SqsBench, folder: Path) -> dict[str, Any]:
    """Run the program of a pod to its end, where no package of this environment can be imported."""
    (made,) = bench.bench.made("ScaledJob")
    pod = made["spec"]["jobTargetRef"]["template"]["spec"]["containers"][0]
    plan = {item["name"]: item["value"] for item in pod["env"] if item["name"] == "SLIPWAY_BATCH"}
    endless = json.dumps({**json.loads(plan["SLIPWAY_BATCH"]), "until": float("inf")})
    message = folder / "message"
    assert pod["command"][2] == program.queue_text(SqsKind())
    subprocess.run(
        [sys.executable, "-S", "-c", pod["command"][2], str(message)],
        check=False,
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
            "SLIPWAY_BATCH": endless,
            "SLIPWAY_CHUNKS_0": bench.bench.link(),
            "SLIPWAY_CONSUMER": "pod-1",
        },
    )
    ended: dict[str, Any] = json.loads(message.read_text())
    return ended


def test_a_pod_reads_sqs_with_nothing_but_what_the_portal_put_into_the_store(
    sqs_bench: SqsBench, tmp_path: Path
) -> None:
    sqs_bench.running()
    assert run_pod(sqs_bench, tmp_path) == {"code": 0, "detail": ""}, "the queue is empty"

    sqs_bench.client.delete_queue(QueueUrl=sqs_bench.queue)
    assert run_pod(sqs_bench, tmp_path) == {
        "code": NEVER,
        "detail": f"the queue {sqs_bench.queue} does not exist",
    }


def test_the_archive_is_the_same_each_time_and_holds_two_services_only() -> None:
    first, second = SqsKind().library(), replace(SqsKind().library())  # type: ignore[type-var]

    assert first.digest == second.digest
    names = zipfile.ZipFile(io.BytesIO(first.archive)).namelist()
    assert {
        n.split("/")[2] for n in names if n.startswith("botocore/data/") and n.count("/") > 2
    } == {
        "sqs",
        "sts",
    }
    assert len(first.archive) < 1 << 20
