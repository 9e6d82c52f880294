"""The histograms of a cluster's Prometheus that count what a percentile guard measures.

The first source that has both revisions is kept for the rollout. `query` has the placeholders of
`promql`; of a release that has both the old and the new name of a metric the new one is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from deployments.guards.domain.families.percentiles import Measure
from fleet.telemetry.domain import metric_names
from fleet.telemetry.domain.metric_names import LATER_TENSORRT_LLM, TENSORRT_LLM, MetricNames

_PODS: Final = 'namespace="$namespace", pod=~"$workload(-predictor)?-[a-z0-9]+-[a-z0-9]+"'
_SECONDS: Final = 1000.0


@dataclass(frozen=True, slots=True)
class HistogramSource:
    """A query for a histogram. `scale` converts its unit to milliseconds."""

    name: str
    label: str
    query: str
    scale: float = 1.0


def _of_server(
    names: MetricNames, metrics: tuple[str, ...], label: str
) -> Iterator[HistogramSource]:
    later = [f"{LATER_TENSORRT_LLM}{metric}" for metric in metrics if names is TENSORRT_LLM]
    for metric in (*metrics, *later):
        yield HistogramSource(
            metric,
            f"{names.server} histogram of {label}",
            f"sum by (instance, le) ({metric}_bucket{{{_PODS}}})",
            scale=_SECONDS,
        )


# What users wait for comes first: the gateway's view, then the server's own.
_OF_WHOLE_ANSWERS: Final[tuple[HistogramSource, ...]] = (
    HistogramSource(
        "istio",
        "Istio histogram at the caller",
        "sum by (instance, le) (istio_request_duration_milliseconds_bucket"
        '{reporter="source", destination_workload_namespace="$namespace", '
        'destination_workload=~"$workload(-predictor)?"})',
    ),
    HistogramSource(
        "envoy",
        "Envoy histogram at the gateway",
        # Gateways name the cluster of a Service in their own ways, all with both names in it.
        "sum by (instance, le) (envoy_cluster_upstream_rq_time_bucket"
        '{envoy_cluster_name=~"(.*[^a-z0-9-])?$workload(-predictor)?([^a-z0-9-].*)?", '
        'envoy_cluster_name=~"(.*[^a-z0-9-])?$namespace([^a-z0-9-].*)?"})',
    ),
    HistogramSource(
        "triton",
        "Triton histogram of first responses",
        "sum by (instance, le) (nv_inference_first_response_histogram_ms_bucket"
        f'{{{_PODS}, model="$model"}})',
    ),
    *(
        source
        for names in metric_names.SERVERS
        for source in _of_server(names, (names.whole_request,), "whole answers")
    ),
)
SOURCES: Final[Mapping[Measure, tuple[HistogramSource, ...]]] = {
    Measure.LATENCY: _OF_WHOLE_ANSWERS,
    Measure.TTFT: tuple(
        source
        for names in metric_names.SERVERS
        for source in _of_server(names, names.first_token, "first tokens")
    ),
    Measure.ITL: tuple(
        source
        for names in metric_names.SERVERS
        for source in _of_server(names, names.later_token, "later tokens")
    ),
}
_SERVERS: Final = "none of vLLM, of SGLang or of TensorRT-LLM"
NO_SOURCE: Final[Mapping[Measure, str]] = {
    Measure.LATENCY: (
        "Prometheus has no latency histogram of both revisions: none of Istio, of an Envoy gateway, of "
        "Triton (24.11 or newer with histogram_latencies), of vLLM, of SGLang or of TensorRT-LLM"
    ),
    Measure.TTFT: f"Prometheus has no histogram of first tokens of both revisions: {_SERVERS}",
    Measure.ITL: f"Prometheus has no histogram of later tokens of both revisions: {_SERVERS}",
}


def find_source(measure: Measure, name: str) -> HistogramSource | None:
    return next((source for source in SOURCES[measure] if source.name == name), None)
