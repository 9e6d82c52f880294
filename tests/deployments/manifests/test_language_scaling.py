"""Triggers on the metrics of a language model's own server. tests/cluster/test_keda_prometheus.py moves them."""

from __future__ import annotations

import pytest

from deployments.manifests.domain import autoscaling
from deployments.manifests.domain.metadata import ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifest_strategies import CONTEXT

_WHERE = '{namespace="vision",pod=~"detector-r1-.+"}'


@pytest.mark.parametrize(
    ("engine", "metric", "query", "scraped"),
    [
        (
            "kserve-vllm",
            "kv-cache",
            "((100 * avg(max by (pod) (vllm:kv_cache_usage_perc{0} or vllm:gpu_cache_usage_perc{0}))) > 0)"
            " or vector(0)",
            "vllm:kv_cache_usage_perc",
        ),
        (
            "kserve-sglang",
            "kv-cache",
            "((100 * avg(max by (pod) (sglang:token_usage{0}))) > 0) or vector(0)",
            "sglang:token_usage",
        ),
        (
            "kserve-sglang",
            "first-token",
            "((1000 * histogram_quantile(0.95, sum by (le) "
            "(rate(sglang:time_to_first_token_seconds_bucket{0}[2m])))) > 0) or vector(0)",
            "sglang:time_to_first_token_seconds_bucket",
        ),
        # What KEDA watches where no metric is named.
        (
            "kserve-tensorrt-llm",
            "",
            "((1000 * histogram_quantile(0.95, sum by (le) "
            "(rate(time_to_first_token_seconds_bucket{0}[2m]) or "
            "rate(trtllm_time_to_first_token_seconds_bucket{0}[2m])))) > 0) or vector(0)",
            "time_to_first_token_seconds_bucket",
        ),
        (
            "triton-vllm",
            "",
            "((1000 * histogram_quantile(0.95, sum by (le) "
            "(rate(vllm:time_to_first_token_seconds_bucket{0}[2m])))) > 0) or vector(0)",
            "vllm:time_to_first_token_seconds_bucket",
        ),
        (
            "triton-vllm",
            "latency",
            "((sum(rate(vllm:e2e_request_latency_seconds_sum{0}[2m])) / "
            "sum(rate(vllm:e2e_request_latency_seconds_count{0}[2m])) * 1000) > 0) or vector(0)",
            "vllm:e2e_request_latency_seconds_count",
        ),
    ],
)
def test_a_trigger_reads_the_series_of_its_server(
    engine: str, metric: str, query: str, scraped: str
) -> None:
    data = {
        "engine": engine,
        "instance_type": "g5.xlarge",
        "max_replicas": 3,
        "llm": {"hugging_face_id": "org/model"},
        "scaling": {"kind": "keda", "metric": metric},
    }
    spec = ServingSpec.from_json(data)
    served = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec)
    (scaled,) = autoscaling.autoscaler(CONTEXT, served)
    (trigger,) = scaled["spec"]["triggers"]

    assert trigger["metadata"]["query"] == query.replace("{0}", _WHERE)
    assert trigger["metricType"] == "Value", (
        "a percentage and a duration are not divided by replicas"
    )
    assert autoscaling.metric_names(spec) == {spec.scaling.metric: scraped}
