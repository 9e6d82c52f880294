"""The parts of Triton that are for its operator only, refused by the gateway and the pod."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

from deployments.delivery.services import observe
from deployments.models import Deployment
from fleet.kube.domain.pod_proxy import PodRequest
from fleet.kube.services import clients
from tests import plain_http
from tests.contract import adder

# Each read or changed something of a Triton whose whole API was open.
_ADMINISTRATION = (
    ("POST", "v2/repository/index"),
    ("POST", "v2/repository/models/large-adder/unload"),
    ("POST", "v2/repository/models/large-adder/load"),
    ("GET", "v2/systemsharedmemory/status"),
    ("POST", "v2/systemsharedmemory/region/x/register"),
    ("GET", "v2/cudasharedmemory/status"),
    ("GET", "v2/logging"),
    ("POST", "v2/logging"),
    ("GET", "v2/trace/setting"),
    ("POST", "v2/trace/setting"),
    ("POST", "v2/models/adder/trace/setting"),
    ("GET", "v2/models/adder/config"),
    ("GET", "v2/models/stats"),
    ("GET", "v2/models/adder/stats"),
)
# The same behind what is carried.
_AROUND = (
    "v2/models/../repository/index",
    "v2/models/%2e%2e/repository/index",
    "v2/models/adder/..%2f..%2frepository%2findex",
    "v2//repository/index",
    "v2/health/ready/../../repository/index",
    "v2/health/ready%2f..%2f..%2frepository%2findex",
)
_REGION = {"key": "/x", "offset": 0, "byte_size": 8}


def require_shut(url: str) -> None:
    """Without a word to Triton, or by Triton itself: models share one address with additional ones."""
    statuses = {}
    for method, path in [*_ADMINISTRATION, *(("POST", path) for path in _AROUND)]:
        # By hand: the client would put dots in order before it sends them.
        statuses[path] = _status_of(method, url, path)
    assert {path: status for path, status in statuses.items() if status not in (403, 404)} == {}
    assert statuses["v2/repository/index"] == statuses["v2/logging"] == 404
    assert plain_http.client.get(f"{url}/v2/models/adder").json()["name"] == "adder"
    assert plain_http.client.get(f"{url}/v2/models/adder/ready").status_code == 200
    assert plain_http.client.get(f"{url}/v2/health/ready").status_code == 200
    assert plain_http.client.get(f"{url}/metrics").status_code == 404
    assert adder.answers(url, 1, model="large-adder")[10.0] == 1


def _status_of(method: str, url: str, path: str) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.putrequest(method, f"{parts.path}/{path}", skip_accept_encoding=True)
        body = json.dumps(_REGION).encode() if method == "POST" else b""
        connection.putheader("Content-Length", str(len(body)))
        # What opens it is a line feed, which a server takes for the end of the header.
        connection.putheader("slipway-shut", "x")
        connection.endheaders(body)
        return connection.getresponse().status
    finally:
        connection.close()


def require_shut_in_the_pod(deployment: Deployment) -> None:
    """Triton itself refuses it, also for clients that bypass the gateway."""
    pods = observe.observe([deployment])[deployment.pk].pods[1]
    for method, path in _ADMINISTRATION:
        body = json.dumps(_REGION).encode() if method == "POST" else None
        call = PodRequest(deployment.namespace, pods[0]["metadata"]["name"], 8080, f"/{path}", body)
        answer = clients.client_for(deployment.cluster_id).proxy_request(call)
        assert answer.status == 403, (path, answer.status)
