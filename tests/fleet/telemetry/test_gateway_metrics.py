"""What gateways count of the Services of revisions, and what of it never came back."""

from __future__ import annotations

import pytest

from fleet.clusters.domain.prometheus import PrometheusSample
from fleet.telemetry.domain import gateway_metrics
from fleet.telemetry.domain.gateway_metrics import Passed

SERVICES = ("detector-r1-predictor", "detector-r2-predictor")


def page(cluster: str, **counters: int) -> str:
    return "".join(
        f"# TYPE envoy_cluster_upstream_{name} counter\n"
        f'envoy_cluster_upstream_{name}{{envoy_cluster_name="{cluster}"}} {value}\n'
        for name, value in counters.items()
    )


def read(text: str) -> dict[str, dict[str, Passed]]:
    samples = gateway_metrics.parse_page(text)
    return gateway_metrics.count_requests(
        samples, namespace="vision", services=SERVICES, proxy="envoy-1"
    )


# Each as a real Envoy 1.3x counted 10 requests to such a server (and 7 of clients that left).
@pytest.mark.parametrize(
    ("counters", "counted"),
    [
        ({"rq_total": 10, "rq_completed": 10}, Passed(10, 0)),
        # Answers of the server, errors among them, came back.
        ({"rq_total": 10, "rq_completed": 10, "rq_5xx": 10}, Passed(10, 0)),
        # Seven of seventeen clients left before the timeout of the gateway.
        ({"rq_total": 17, "rq_completed": 10, "cx_destroy_with_active_rq": 17}, Passed(17, 17)),
        # No connection: three retries of each.
        (
            {"rq_completed": 10, "rq_pending_failure_eject": 40, "rq_retry": 30},
            Passed(10, 10),
        ),
        ({"rq_completed": 10, "cx_none_healthy": 10}, Passed(10, 10)),
        # HTTP/2: seventeen streams were reset on one connection.
        (
            {"cx_http2_total": 1, "rq_total": 17, "rq_completed": 10, "rq_tx_reset": 17},
            Passed(17, 17),
        ),
        # HTTP/2: eight streams ended with the server's connection.
        (
            {
                "cx_http2_total": 1,
                "rq_total": 8,
                "rq_completed": 8,
                "rq_pending_failure_eject": 8,
                "cx_destroy_with_active_rq": 1,
            },
            Passed(8, 8),
        ),
    ],
)
def test_envoy_counts_each_way_in_which_a_request_is_lost(
    counters: dict[str, int], counted: Passed
) -> None:
    text = page("vision_detector-r2-predictor_80", **counters)

    assert read(text) == {"detector-r2-predictor": {"envoy-1": counted}}


@pytest.mark.parametrize(
    "cluster",
    [
        "vision_detector-r2-predictor_80",
        "vision_detector-r2-predictor_80_h2c",
        "outbound|80||detector-r2-predictor.vision.svc.cluster.local",
        "vision/detector-r2-predictor/80/da39a3ee5e",
        "kube_vision_detector-r2-predictor_80",
    ],
)
def test_gateways_name_a_service_in_their_own_ways(cluster: str) -> None:
    assert list(read(page(cluster, rq_total=3))) == ["detector-r2-predictor"]


@pytest.mark.parametrize(
    "cluster",
    [
        # Of another team, of another revision, of a deployment with a longer name.
        "nlp_detector-r2-predictor_80",
        "vision_detector-r20-predictor_80",
        "vision_my-detector-r2-predictor_80",
        # Envoy Gateway has one cluster for all revisions of a rule.
        "httproute/vision/detector/rule/0",
    ],
)
def test_other_clusters_do_not_count(cluster: str) -> None:
    assert read(page(cluster, rq_total=3)) == {}


def test_ports_of_a_service_are_added_up() -> None:
    text = page("vision_detector-r2-predictor_80", rq_total=3, cx_destroy_with_active_rq=1)
    text += page(
        "vision_detector-r2-predictor_9000_h2c", rq_total=4, rq_rx_reset=2, cx_http2_total=1
    )

    assert read(text) == {"detector-r2-predictor": {"envoy-1": Passed(7, 3)}}


def istio(value: float, flags: str, *, code: str = "200", **labels: str) -> PrometheusSample:
    named = {
        "__name__": "istio_requests_total",
        "reporter": "source",
        "destination_service_name": "detector-r2-predictor",
        "destination_service_namespace": "vision",
        "response_code": code,
        "response_flags": flags,
        "pod": "istio-gateway-1",
    }
    return PrometheusSample(value, {**named, **labels})


def test_istio_flags_what_had_no_answer_of_the_server() -> None:
    samples = [
        istio(80, "-"),
        istio(6, "-", code="500"),
        istio(5, "UT", code="504"),
        istio(4, "UF,URX", code="503"),
        istio(3, "DC", code="0"),
        istio(2, "UC", code="503"),
        # The server's own sidecar, and another team's service of that name.
        istio(100, "-", reporter="destination"),
        istio(100, "-", destination_service_namespace="nlp"),
    ]

    counted = gateway_metrics.count_requests(samples, namespace="vision", services=SERVICES)

    assert counted == {"detector-r2-predictor": {"istio-gateway-1": Passed(100, 14)}}


def test_text_that_is_no_metrics_is_refused() -> None:
    with pytest.raises(gateway_metrics.NotMetrics):
        gateway_metrics.parse_page("<html>hello</html> {")
