"""Every kind of spec that the portal takes, and a place for it, drawn by Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from deployments.manifests.domain.metadata import (
    AdditionalModelFiles,
    ManifestContext,
    ServedRevision,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.engines import COPYING_ENGINES, WITHOUT_QUEUE_METRICS
from deployments.spec.domain.job_queues import KafkaTopic, RedisList, SqsQueue
from deployments.spec.domain.serving_spec import (
    AdditionalModel,
    Batching,
    Llm,
    Network,
    OfficeHours,
    Placement,
    Scaling,
    ServingSpec,
    Storage,
)
from deployments.spec.domain.triton_settings import Instances, TritonSettings

_names = st.from_regex(r"[a-z]([-a-z0-9]{0,18}[a-z0-9])?", fullmatch=True)
_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/jobs"
_OTHER_TYPES = st.sampled_from(["", "g6.xlarge", "p5.48xlarge, g6e.xlarge"])
_TRITONS = (*serving_spec.ONNX_ENGINES, serving_spec.TRITON_VLLM)
_TAKES_CLAIMS = (
    serving_spec.KSERVE_VLLM,
    serving_spec.KSERVE_SGLANG,
    serving_spec.KSERVE_TENSORRT_LLM,
)
_hours = st.builds(
    OfficeHours,
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    start=st.sampled_from(["07:00", "00:30"]),
    end=st.sampled_from(["20:00", "23:59"]),
    days=st.sampled_from(["1-5", "0,6", "*"]),
)

_topics = st.builds(
    KafkaTopic,
    bootstrap_servers=st.sampled_from(["kafka:9092", "b-1.kafka.aws:9096,b-2.kafka.aws:9096"]),
    topic=st.just("jobs"),
    consumer_group=st.just("models"),
    secret=st.sampled_from(["", "kafka-auth"]),
)
_lists = st.builds(
    RedisList,
    address=st.just("redis.data:6379"),
    list=st.just("jobs:high"),
    secret=st.sampled_from(["", "redis-auth"]),
)

CONTEXT = ManifestContext(
    team="vision",
    namespace="vision",
    deployment="detector",
    deployment_id=7,
    is_local_cluster=False,
    gateway_namespace="slipway-gateway",
    gateway_name="slipway",
    triton_image="triton:1",
    storage_image="storage:1",
    vllm_image="vllm:1",
    sglang_image="sglang:1",
    tensorrt_llm_image="tensorrt-llm:1",
    prometheus_url="http://prometheus:9090",
    cache_node_group="gpu",
)


@st.composite
def _scalings(draw: st.DrawFn, engine: str, nodes: int, *, is_slice: bool) -> Scaling:
    kinds = [serving_spec.FIXED]
    if engine != serving_spec.LLM_SERVICE and nodes == 1:
        kinds += [serving_spec.HPA, serving_spec.KEDA]
        kinds += [serving_spec.KNATIVE] if engine in serving_spec.KSERVE_ENGINES else []
    kind: Any = draw(st.sampled_from(kinds))
    wakes = False
    made: dict[str, Any] = {"cooldown_seconds": draw(st.sampled_from([0, 300, 7200]))}
    has_queue_metric = engine not in WITHOUT_QUEUE_METRICS
    if kind == serving_spec.HPA:
        metrics = ["cpu", "memory", *(["queue"] if has_queue_metric else [])]
        made["metric"] = draw(st.sampled_from(metrics))
    if kind == serving_spec.KNATIVE:
        made["metric"] = draw(st.sampled_from(["concurrency", "rps"]))
    if kind == serving_spec.KEDA:
        made["office_hours"] = draw(st.none() | _hours)
        made["sqs"] = draw(st.none() | st.just(SqsQueue(queue_url=_QUEUE)))
        made["kafka"] = draw(st.none() | _topics)
        made["redis"] = draw(st.none() | _lists)
        has_queue = bool(made["sqs"] or made["kafka"] or made["redis"])
        metrics = ["latency", "gateway-latency", *(["queue"] if has_queue_metric else [])]
        metrics += [] if is_slice else ["gpu"]
        metrics += ["first-token"] if engine in serving_spec.LLM_ENGINES else []
        metrics += ["kv-cache"] if engine in serving_spec.LLM_ENGINES and has_queue_metric else []
        metrics += [""] if made["office_hours"] or has_queue else []
        made["metric"] = draw(st.sampled_from(metrics))
        if made["metric"] != "latency":
            made["max_latency_ms"] = draw(st.sampled_from([0, 250]))
        if engine not in serving_spec.LLM_ENGINES and not is_slice:
            made["max_gpu_memory_percent"] = draw(st.sampled_from([0, 90]))
        wakes = has_queue or made["metric"] in ("", "gateway-latency")
    # A metric that only running pods report never starts the first pod.
    if kind == serving_spec.KNATIVE or wakes:
        made["can_scale_to_zero"] = draw(st.booleans())
    return Scaling(kind=kind, **made)


@st.composite
def _llms(draw: st.DrawFn, engine: str) -> Llm:
    has_nodes = engine in (serving_spec.KSERVE_VLLM, serving_spec.LLM_SERVICE)
    nodes = draw(st.sampled_from([1, 2])) if has_nodes else 1
    can_copy = engine == serving_spec.LLM_SERVICE or (engine in COPYING_ENGINES and nodes == 1)
    made: dict[str, Any] = {"hugging_face_id": "org/model-8B"}
    takes_claims = engine in _TAKES_CLAIMS
    if takes_claims and (nodes > 1 or draw(st.booleans())):
        made = {"artifact": "pvc://weights/model-8B"}
    if engine in COPYING_ENGINES and draw(st.booleans()):
        made |= {"lora_adapters": "sql=org/sql, law=org/law", "max_lora_rank": 64}
    is_cached = draw(st.booleans())
    is_routed = engine == serving_spec.LLM_SERVICE and is_cached and draw(st.booleans())
    memory = "gpu_memory_utilization"
    if engine == serving_spec.KSERVE_SGLANG:
        memory = "mem_fraction_static"
    is_tensorrt_llm = engine == serving_spec.KSERVE_TENSORRT_LLM
    if not is_tensorrt_llm and draw(st.booleans()):
        made[memory] = 0.5
    return Llm(
        **made,
        prefix_caching=is_cached,
        prefix_routing=is_routed,
        quantization="auto" if is_tensorrt_llm else draw(st.sampled_from(["auto", "fp8"])),
        max_num_batched_tokens=draw(st.sampled_from([0, 4096])),
        enforce_eager=draw(st.booleans()),
        nodes=nodes,
        tensor_parallel=draw(st.sampled_from([1, 2, 8])),
        data_parallel=draw(st.sampled_from([1, 2])) if can_copy else 1,
        max_model_len=draw(st.sampled_from([0, 8192])),
        kv_cache_dtype=draw(st.sampled_from(["auto", "fp8"])),
        max_num_seqs=draw(st.sampled_from([0, 64])),
    )


@st.composite
def serving_specs(draw: st.DrawFn, engines: tuple[str, ...] = serving_spec.ENGINES) -> ServingSpec:
    engine: Any = draw(st.sampled_from(engines))
    llm = draw(_llms(engine)) if engine in serving_spec.LLM_ENGINES else None
    resource = "nvidia.com/gpu"
    if llm is None:
        resource = draw(st.sampled_from([resource, "nvidia.com/mig-1g.10gb"]))
    is_slice = resource != "nvidia.com/gpu"
    scaling = draw(_scalings(engine, llm.nodes if llm else 1, is_slice=is_slice))
    least = draw(st.integers(1, 5))
    most = least if scaling.kind == serving_spec.FIXED else draw(st.integers(least, 9))
    gpus = 1 if is_slice else draw(st.integers(1, 8))
    tuning = draw(_onnx_tuning()) if llm is None else {}
    cache: Any = draw(st.sampled_from(_caches(engine, llm)))
    if llm is None and scaling.kind != serving_spec.KNATIVE and cache != "cluster":
        tuning["additional_models"] = draw(_additional_models())
    return ServingSpec(
        engine=engine,
        instance_type=draw(st.sampled_from(["g5.xlarge", "p4d.24xlarge"])),
        gpu_resource=resource,
        gpus=llm.gpus_of_pod if llm else gpus,
        min_replicas=least,
        max_replicas=most,
        cpu=draw(st.sampled_from(["2", "1500m"])),
        env=tuple(
            draw(st.dictionaries(st.sampled_from(["APP_A", "APP_B", "TZ"]), st.just("x"))).items()
        ),
        image=draw(
            st.sampled_from(["", "registry.example/server:26.07", "vllm/vllm-openai:v0.32.0"])
        ),
        termination_grace_seconds=draw(st.sampled_from([0, 20, 120, 600, 3600])),
        precision=draw(st.sampled_from(["original", "fp16", "bf16"])),
        summary_latencies=engine in _TRITONS and draw(st.booleans()),
        scaling=scaling,
        placement=Placement(
            capacity=draw(st.sampled_from(["on-demand", "spot", "any"])),
            priority_class=draw(st.sampled_from(["", "serving-high"])),
            other_instance_types=draw(_OTHER_TYPES) if llm is None or llm.nodes == 1 else "",
            queue=draw(st.sampled_from(["", "serving"]))
            if scaling.kind != serving_spec.KNATIVE and _has_named_image(engine, llm)
            else "",
            node_labels=draw(st.sampled_from(["", "pool=serving, topology.kubernetes.io/zone=a"])),
            tolerations=draw(
                st.sampled_from(["", "dedicated:NoExecute, reserved=batch:NoSchedule"])
            ),
            spread_zones=draw(st.booleans()),
            do_not_disrupt=draw(st.booleans()),
            pre_pull=_has_named_image(engine, llm) and draw(st.booleans()),
        ),
        storage=Storage(
            model_cache=cache,
            volume_claim="models" if cache == "volume" else "",
            shm_size=draw(st.sampled_from(["", "1Gi", "512Mi"])),
        ),
        network=draw(st.builds(Network)),
        llm=llm,
        **tuning,
    )


def _has_named_image(engine: str, llm: Llm | None) -> bool:
    return engine != serving_spec.LLM_SERVICE and (llm is None or llm.nodes == 1)


def _caches(engine: str, llm: Llm | None) -> list[str]:
    caches = ["none"]
    if engine in serving_spec.KSERVE_ENGINES:
        caches.append("cluster")
    if engine != serving_spec.TRITON_VLLM and not (llm and llm.artifact):
        caches.append("volume")
    return caches


@st.composite
def _onnx_tuning(draw: st.DrawFn) -> dict[str, Any]:
    is_dynamic = draw(st.booleans())
    return {
        "batching": Batching(
            is_dynamic=is_dynamic,
            max_queue_delay_us=draw(st.sampled_from([0, 500])) if is_dynamic else 0,
            preferred_batch_sizes=draw(st.sampled_from([(), (4, 8)])) if is_dynamic else (),
        ),
        "instances_per_gpu": draw(st.integers(1, 3)),
        "warm_up": draw(st.booleans()),
        "triton": TritonSettings(
            response_cache_mib=draw(st.sampled_from([0, 64])),
            instances=Instances(priority=draw(st.sampled_from([0, 2]))),
        ),
    }


@st.composite
def _additional_models(draw: st.DrawFn) -> tuple[AdditionalModel, ...]:
    models = draw(st.lists(st.sampled_from(["classifier", "embedder"]), max_size=2, unique=True))
    return tuple(AdditionalModel(model=name, version=1, **draw(_onnx_tuning())) for name in models)


@st.composite
def placed(
    draw: st.DrawFn, engines: tuple[str, ...] = serving_spec.ENGINES
) -> tuple[ManifestContext, ServedRevision]:
    slug = draw(_names)
    context = ManifestContext(
        team=slug,
        namespace=slug,
        deployment=draw(_names),
        deployment_id=draw(st.integers(1, 10**9)),
        is_local_cluster=draw(st.booleans()),
        gateway_namespace="slipway-gateway",
        gateway_name="slipway",
        triton_image="nvcr.io/nvidia/tritonserver:26.07-py3",
        storage_image="kserve/storage-initializer:v0.20.0",
        s3_endpoint=draw(st.sampled_from(["", "http://127.0.0.1:9000"])),
        s3_region="us-east-1",
        role_arn=draw(st.sampled_from(["", "arn:aws:iam::1:role/models"])),
        vllm_image="vllm/vllm-openai:v0.11.0",
        sglang_image="lmsysorg/sglang:v0.5.23",
        tensorrt_llm_image="nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
        prometheus_url="http://prometheus-operated.monitoring:9090",
        cache_node_group="gpu",
    )
    spec = draw(serving_specs(engines))
    served = ServedRevision(
        number=draw(st.integers(1, 999)),
        model_name=draw(_names),
        version_label="detector:3",
        sha256="ab" * 32,
        storage_uri="s3://bucket/repositories/t/m/1/abc/",
        spec=spec,
        size_mib=draw(st.integers(0, 200_000)),
        config_name=draw(st.sampled_from(["", "slipway-0123456789abcdef"])),
        additional_models=tuple(
            AdditionalModelFiles(
                model.model, model.label, "cd" * 32, f"s3://bucket/p/{model.model}/", 70
            )
            for model in spec.additional_models
        ),
    )
    return context, served
