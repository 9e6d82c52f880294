"""What the portal makes of a Prometheus' answers: a real one, and servers that misbehave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fleet.clusters.domain.prometheus import (
    Endpoint,
    NotPrometheus,
    PrometheusDenied,
    PrometheusError,
    PrometheusSample,
    PrometheusUnreachable,
    QueryRefused,
    QueryResult,
    parse,
)
from fleet.clusters.gateways import prometheus as gateway
from fleet.clusters.services import capabilities, connection_checks
from fleet.models import Cluster
from portal.accounts.policy import SYSTEM
from tests.fixtures.prometheus import RealPrometheus
from tests.fleet.fakes import FakeKube


@contextmanager
def answering(status: int, body: bytes, requests: list[Any] | None = None) -> Iterator[str]:
    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            # Read in any case: closing with something unread resets the connection.
            content = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if requests is not None:
                requests.append((self.path, dict(self.headers), content))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def run_query(url: str, query: str = "up", token_path: str = "") -> QueryResult | PrometheusError:
    [result] = gateway.query(Endpoint(url, token_path), [query])
    return result


def test_a_real_one_answers_scalars_vectors_nothing_and_its_own_refusals(
    prometheus: RealPrometheus,
) -> None:
    prometheus.show({'answers{model="a"}': 3, 'answers{model="b"}': 4})
    queries = ["1 + 2", "sum(answers)", "absent_metric", "0/0", "sum(answers", "answers[1m]"]

    result = gateway.query(Endpoint(prometheus.url + "/"), queries)

    assert result[0] == QueryResult("scalar", (PrometheusSample(3.0),))
    assert result[1] == QueryResult("vector", (PrometheusSample(7.0),))
    assert result[2] == QueryResult("vector", ())
    assert isinstance(result[3], QueryResult)
    assert str(result[3].samples[0].value) == "nan"
    assert isinstance(result[4], QueryRefused)
    assert "parse error: unclosed left parenthesis" in result[4].message
    assert isinstance(result[5], QueryRefused)
    assert result[5].message == "the query gives a matrix, not one number"
    assert gateway.version(Endpoint(prometheus.url)).startswith("2.")


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (200, b"<html>", NotPrometheus, "it returned 200 with a body that is not from Prometheus"),
        (200, b"[]", NotPrometheus, "it returned 200 with a body that is not from Prometheus"),
        (
            200,
            b'{"status":"success","data":{}}',
            NotPrometheus,
            "does not follow the Prometheus API",
        ),
        (
            200,
            b'{"status":"success","data":{"resultType":"vector","result":[{"value":[]}]}}',
            NotPrometheus,
            "does not follow the Prometheus API",
        ),
        (302, b"", NotPrometheus, "redirects elsewhere"),
        (401, b"", PrometheusDenied, "the portal is not allowed to query it"),
        (502, b"bad gateway", PrometheusUnreachable, "Prometheus returned 502"),
        (
            503,
            b'{"status":"error","errorType":"timeout","error":"query timed out"}',
            PrometheusUnreachable,
            "could not run the query (timeout): query timed out",
        ),
        (
            422,
            b'{"status":"error","errorType":"execution","error":"many-to-many matching"}',
            QueryRefused,
            "many-to-many matching",
        ),
    ],
)
def test_what_is_no_answer_says_what_it_is_instead(
    status: int, body: bytes, kind: type[PrometheusError], message: str
) -> None:
    with pytest.raises(kind) as refusal:
        parse(status, body)

    assert message in refusal.value.message


def test_warnings_are_kept_because_data_may_be_missing() -> None:
    body = {
        "status": "success",
        "warnings": ["a store is away"],
        "data": {"resultType": "scalar", "result": [1, "2"]},
    }

    result = parse(200, json.dumps(body).encode())

    assert result == QueryResult("scalar", (PrometheusSample(2.0),), ("a store is away",))


def test_redirects_are_not_followed_and_answers_are_bounded() -> None:
    with answering(302, b"") as url:
        assert isinstance(run_query(url), NotPrometheus)
    with answering(200, b" " * 2_000_001) as url:
        result = run_query(url)

    assert isinstance(result, QueryRefused)
    assert (
        result.message
        == "the response is larger than 2 MB; query fewer series, for example with sum by (…)"
    )


def test_an_unused_address_is_unreachable() -> None:
    result = run_query("http://127.0.0.1:1")

    assert isinstance(result, PrometheusUnreachable)
    assert result.message.startswith("http://127.0.0.1:1/api/v1/query does not answer: ")


def test_token_is_read_from_its_file_each_time_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    requests: list[Any] = []
    body = b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}'
    with answering(200, body, requests) as url:
        file.write_text("first\n")
        run_query(url, token_path=str(file))
        file.write_text("second\n")
        run_query(url, token_path=str(file))
        file.write_text("two words")
        bad = run_query(url, token_path=str(file))
        missing = run_query(url, token_path=str(tmp_path / "nowhere"))

    assert [headers["Authorization"] for _, headers, _ in requests] == [
        "Bearer first",
        "Bearer second",
    ]
    assert requests[0][0] == "/api/v1/query"
    assert requests[0][2] == "query=up&timeout=5000ms"
    assert isinstance(bad, PrometheusDenied)
    assert "two words" not in bad.message
    assert isinstance(missing, PrometheusDenied)
    assert missing.message.endswith("cannot be read: No such file or directory")


@pytest.mark.django_db
def test_connection_test_says_whether_it_answers(
    kube: FakeKube, cluster: Cluster, prometheus: RealPrometheus
) -> None:
    def line() -> tuple[bool | None, str, str]:
        results = connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)
        checks = [row for row in results if row.name == "Prometheus"]
        return checks[0].ok, checks[0].detail, checks[0].fix

    assert line() == (
        None,
        "No Prometheus is registered for cluster local. Prometheus is needed for PromQL guards and "
        "latency percentiles in rollouts.",
        "Register the address of the cluster's Prometheus.",
    )
    Cluster.objects.update(prometheus_url=prometheus.url)
    assert line()[:2] == (True, f"answers queries, version {_version(prometheus)}")
    Cluster.objects.update(prometheus_url="http://127.0.0.1:1")
    ok, detail, fix = line()
    assert ok is None
    assert detail.startswith("Could not check Prometheus. http://127.0.0.1:1/api")
    assert fix == "Check its address, its token and the network path to it. Then test again."


def _version(prometheus: RealPrometheus) -> str:
    return gateway.version(Endpoint(prometheus.url))


@pytest.mark.django_db
def test_feature_is_there_only_when_it_answers(
    kube: FakeKube, cluster: Cluster, prometheus: RealPrometheus
) -> None:
    Cluster.objects.update(prometheus_url=prometheus.url)

    assert capabilities.probe(cluster_id=cluster.pk).feature("promql").is_there is True
