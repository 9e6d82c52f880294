"""How a worker gets credentials of AWS, and that it signs as the SDK does."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from deployments.batch.domain.sources.sqs import credentials
from deployments.batch.domain.sources.sqs.api import SqsApi
from deployments.batch.domain.sources.sqs.credentials import Credentials
from deployments.batch.domain.worker_store import NEVER, Ended
from portal.core.clock import now
from tests.fixtures.aws_server import serving_aws

_VARIABLES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
)


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("token", ["", "a/token+"])
def test_it_signs_as_the_sdk_does(token: str) -> None:
    at = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "AmazonSQS.SendMessage",
    }
    body, host = b'{"QueueUrl": "q"}', "sqs.eu-west-1.amazonaws.com"
    request = AWSRequest("POST", f"https://{host}/", {**headers, "Host": host}, body)
    request.context["timestamp"] = at.strftime("%Y%m%dT%H%M%SZ")
    request.headers["X-Amz-Date"] = request.context["timestamp"]
    auth = SigV4Auth(BotoCredentials("AKID", "secret", token or None), "sqs", "eu-west-1")
    if token:
        request.headers["X-Amz-Security-Token"] = token
    expected = auth.signature(
        auth.string_to_sign(request, auth.canonical_request(request)), request
    )

    made = credentials.signed(
        ("AKID", "secret", token), "eu-west-1", "sqs", host, body, headers, at.timestamp()
    )

    assert made["Authorization"].rpartition("Signature=")[2] == expected
    assert made["X-Amz-Date"] == "20260501T123000Z"


def test_the_role_of_the_service_account_is_assumed_and_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("a.web.token")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/vision-models")
    with serving_aws("sts") as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", address)
        made = Credentials("eu-west-1")
        first = made.current()
        assert made.current() is first, "they are kept until they are about to end"
        made.until = now().timestamp() + 200
        assert made.current() is not first
    key_id, secret, session = first
    assert (key_id[:4], bool(secret), bool(session)) == ("ASIA", True, True)


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
    file.write_text("the-token\n")
    server = http.server.HTTPServer(("127.0.0.1", 0), Agent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/credentials", file
    server.shutdown()
    thread.join()
    server.server_close()


def test_eks_pod_identity_gives_them(
    pod_identity: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, file = pod_identity
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(file))
    assert Credentials("eu-west-1").current() == ("ASIAPOD", "s", "t")

    file.write_text("another")
    with pytest.raises(Ended, match="AWS gives the pod no credentials: HTTP 403"):
        Credentials("eu-west-1").current()


def test_a_pod_without_any_says_what_to_do() -> None:
    with pytest.raises(Ended) as ended:
        SqsApi("https://sqs.eu-west-1.amazonaws.com", "eu-west-1").call("ReceiveMessage")
    assert ended.value.code == NEVER
    assert "give the role of the team's models access to the queue, or name a Secret" in str(
        ended.value
    )
