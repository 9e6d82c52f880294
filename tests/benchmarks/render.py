"""Serving specs rendered per second on one core, as the portal does it before each push and approval.

From the row's JSON to the YAML that a person reads: the spec is checked, the settings become their
Triton configuration, the manifests are built and digested, and written out. Compared with a bare
`yaml.dump` of the same manifests by the library's C and Python writers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import yaml

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    to_yaml,
)
from deployments.manifests.domain.model_files import bucket_files
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain.digests import digest_of
from deployments.spec.domain.engines import WITHOUT_QUEUE_METRICS
from deployments.spec.domain.serving_spec import ServingSpec
from tests.benchmarks.result import Result

SECONDS = 4.0
# The time for everything, of the time that the C writer alone takes for the same objects.
BOUND = 0.5
_SIGNATURE = Signature(
    inputs=(Tensor("images", "FP32", (-1, 3, 224, 224)),),
    outputs=(Tensor("classes", "FP32", (-1, 1000)),),
    max_batch_size=32,
)
_ENGINES: tuple[dict[str, Any], ...] = (
    {"engine": "kserve-triton"},
    {"engine": "triton"},
    {"engine": "kserve-vllm", "llm": {"hugging_face_id": "org/model"}},
    {"engine": "kserve-sglang", "llm": {"hugging_face_id": "org/model"}},
    {"engine": "kserve-tensorrt-llm", "llm": {"hugging_face_id": "org/model"}},
    {"engine": "triton-vllm", "llm": {"hugging_face_id": "org/model"}},
    {"engine": "llm-inference-service", "llm": {"hugging_face_id": "org/model"}},
)
_SCALINGS: tuple[dict[str, Any], ...] = (
    {"kind": "fixed"},
    {"kind": "hpa", "metric": "cpu", "target": 70},
    {"kind": "keda", "metric": "queue", "target": 4, "office_hours": {"timezone": "UTC"}},
)
_CAPACITIES = ("on-demand", "spot")
_TUNINGS: tuple[dict[str, Any], ...] = (
    {},
    {"batching": {"max_queue_delay_us": 500}, "instances_per_gpu": 2, "warm_up": True},
)


def _without_queue(scaling: dict[str, Any]) -> dict[str, Any]:
    return {"metric": "latency"} if scaling.get("metric") == "queue" else {}


def rows() -> list[dict[str, Any]]:
    """Engines by scalings, capacities and settings, as far as each engine takes them."""
    combinations = []
    for engine, scaling, capacity, tuning in itertools.product(
        _ENGINES, _SCALINGS, _CAPACITIES, _TUNINGS
    ):
        if "llm" in engine and tuning:
            continue
        if engine["engine"] == "llm-inference-service" and scaling["kind"] != "fixed":
            continue
        has_queue = engine["engine"] not in WITHOUT_QUEUE_METRICS
        most = 1 if scaling["kind"] == "fixed" else 6
        combinations.append(
            {
                "instance_type": "g5.xlarge",
                "max_replicas": most,
                "env": {"CUDA_MODULE_LOADING": "LAZY"},
                "scaling": scaling if has_queue else {**scaling, **_without_queue(scaling)},
                "placement": {"capacity": capacity},
                **engine,
                **tuning,
            }
        )
    return [ServingSpec.from_json(row).to_json() for row in combinations]


def build(number: int, row: dict[str, Any]) -> list[Manifest]:
    spec = ServingSpec.from_json(row)
    files = bucket_files.plan(
        team="vision",
        model="detector",
        number=number,
        prefix=f"repositories/vision/detector/{number}/0123456789ab/",
        signature=_SIGNATURE,
        spec=spec,
    )
    context = ManifestContext(
        team="vision",
        namespace="vision",
        deployment=f"detector-{number % 500}",
        deployment_id=number,
        is_local_cluster=False,
        gateway_namespace="slipway-gateway",
        gateway_name="slipway",
        triton_image="nvcr.io/nvidia/tritonserver:26.07-py3",
        storage_image="kserve/storage-initializer:v0.20.0",
        s3_region="us-east-1",
        role_arn="arn:aws:iam::111122223333:role/models",
        vllm_image="vllm/vllm-openai:v0.11.0",
        sglang_image="lmsysorg/sglang:v0.5.23",
        tensorrt_llm_image="nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
        prometheus_url="http://prometheus-operated.monitoring:9090",
    )
    served = ServedRevision(
        number=1,
        model_name="detector",
        version_label=f"detector:{number}",
        sha256="ab" * 32,
        storage_uri=f"s3://models/{files.prefix}",
        spec=spec,
        size_mib=500,
        config_name=files.config_name,
    )
    return [*revision.build_shared(context, served), *revision.build_own(context, served)]


def _rate(work: Callable[[], object], *, each: int) -> float:
    """Per second of this process's own CPU time: others on the machine do not count."""
    work()
    rounds, started = 0, time.process_time()
    while time.process_time() - started < SECONDS:
        work()
        rounds += 1
    return rounds * each / (time.process_time() - started)


def _rendered(specs: list[dict[str, Any]]) -> Iterator[str]:
    for number, row in enumerate(specs):
        manifests = build(number, row)
        digest_of(manifests)
        yield to_yaml(manifests)


def _dump(built: list[list[Manifest]], dumper: Any) -> list[str]:
    return [yaml.dump_all(manifests, Dumper=dumper) for manifests in built]


def main() -> Result:
    specs = rows()
    built = [build(number, row) for number, row in enumerate(specs)]
    objects = sum(len(manifests) for manifests in built)
    count = len(specs)
    rendered = _rate(lambda: list(_rendered(specs)), each=count)
    manifests_only = _rate(
        lambda: [digest_of(build(number, row)) for number, row in enumerate(specs)], each=count
    )
    print(
        f"{count} specs of {len(_ENGINES)} engines, {objects / count:.1f} objects each, one core:"
    )
    print(f"  manifests and evidence digest, as before a push  {manifests_only:8.0f} specs/s")
    print(f"  and written as YAML, as a form shows them        {rendered:8.0f} specs/s")
    bare = {}
    for name, dumper in (("C", yaml.CSafeDumper), ("Python", yaml.SafeDumper)):
        bare[name] = _rate(partial(_dump, built, dumper), each=count)
        print(f"  bare yaml.dump of the same, writer in {name:<10} {bare[name]:8.0f} specs/s")
    share = round(bare["C"] / rendered, 2)
    return Result("render", share, BOUND, "of the time of a bare yaml.dump, writer in C")
