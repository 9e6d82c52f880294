"""Where each field of a language model arrives, as rows of settings_in_manifests.ARRIVES."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KSERVE = "InferenceService.spec.predictor"
_WEIGHTS = {"llm_hugging_face_id": "org/model"}
_VLLM = {"engine": "kserve-vllm", **_WEIGHTS}
_SGLANG = {"engine": "kserve-sglang", **_WEIGHTS}
_TENSORRT_LLM = {"engine": "kserve-tensorrt-llm", **_WEIGHTS}
ARGS = f"{_KSERVE}.model.args"
# The options of trtllm-serve, as JSON.
OPTIONS = f"{_KSERVE}.model.env.5.value"
ROWS: list[tuple[str, Mapping[str, str], str, Any]] = [
    ("llm_hugging_face_id", _VLLM, f"{_KSERVE}.model.storageUri", "hf://org/model"),
    (
        "llm_artifact",
        {"engine": "kserve-vllm", "llm_artifact": "oci://registry/m:1"},
        f"{_KSERVE}.model.storageUri",
        "oci://registry/m:1",
    ),
    (
        "llm_gated",
        {**_VLLM, "llm_gated": "on"},
        f"{_KSERVE}.initContainers.0.env.0.valueFrom.secretKeyRef.optional",
        False,
    ),
    (
        # 600 s, then 16,000 MiB at 100 and at 50 MiB a second; probed every 5 s.
        "llm_parameters_millions",
        {**_VLLM, "llm_parameters_millions": "8,000"},
        f"{_KSERVE}.model.startupProbe.failureThreshold",
        216,
    ),
    (
        "llm_data_parallel",
        {**_VLLM, "share": "g5.48xlarge|nvidia.com/gpu|8", "llm_data_parallel": "4"},
        ARGS,
        "--data-parallel-size=4",
    ),
    (
        "llm_prefix_routing",
        {"engine": "llm-inference-service", **_WEIGHTS, "llm_prefix_routing": "on"},
        "LLMInferenceService.spec.router",
        {"scheduler": {}},
    ),
    (
        "llm_nodes",
        {"engine": "kserve-vllm", "llm_artifact": "oci://registry/m:1", "llm_nodes": "2"},
        f"{_KSERVE}.workerSpec.pipelineParallelSize",
        2,
    ),
    (
        "placement_do_not_disrupt",
        {"engine": "llm-inference-service", **_WEIGHTS, "placement_do_not_disrupt": "on"},
        "LLMInferenceService.spec.annotations",
        {"karpenter.sh/do-not-disrupt": "true"},
    ),
    (
        "termination_grace_seconds",
        {"engine": "llm-inference-service", **_WEIGHTS, "termination_grace_seconds": "900"},
        "LLMInferenceService.spec.template.terminationGracePeriodSeconds",
        900,
    ),
    ("llm_max_model_len", {**_VLLM, "llm_max_model_len": "8192"}, ARGS, "--max-model-len=8192"),
    ("llm_max_num_seqs", {**_VLLM, "llm_max_num_seqs": "64"}, ARGS, "--max-num-seqs=64"),
    (
        "llm_gpu_memory_utilization",
        {**_VLLM, "llm_gpu_memory_utilization": "85"},
        ARGS,
        "--gpu-memory-utilization=0.85",
    ),
    (
        "llm_data_parallel",
        {**_SGLANG, "share": "g5.48xlarge|nvidia.com/gpu|8", "llm_data_parallel": "4"},
        ARGS,
        "--dp-size=4",
    ),
    (
        "llm_mem_fraction_static",
        {**_SGLANG, "llm_mem_fraction_static": "85"},
        ARGS,
        "--mem-fraction-static=0.85",
    ),
    ("llm_max_model_len", {**_SGLANG, "llm_max_model_len": "8192"}, ARGS, "--context-length=8192"),
    (
        "llm_max_num_seqs",
        {**_SGLANG, "llm_max_num_seqs": "64"},
        ARGS,
        "--max-running-requests=64",
    ),
    (
        "llm_max_num_batched_tokens",
        {**_SGLANG, "llm_max_num_batched_tokens": "4096"},
        ARGS,
        "--chunked-prefill-size=4096",
    ),
    (
        "llm_kv_cache_dtype",
        {**_SGLANG, "llm_kv_cache_dtype": "fp8"},
        ARGS,
        "--kv-cache-dtype=fp8_e4m3",
    ),
    ("llm_quantization", {**_SGLANG, "llm_quantization": "fp8"}, ARGS, "--quantization=fp8"),
    (
        "llm_prefix_caching",
        {**_SGLANG, "llm_prefix_caching": "off"},
        ARGS,
        "--disable-radix-cache",
    ),
    ("llm_enforce_eager", {**_SGLANG, "llm_enforce_eager": "on"}, ARGS, "--disable-cuda-graph"),
    ("llm_lora_adapters", {**_SGLANG, "llm_lora_adapters": "sql=org/sql"}, ARGS, "sql=org/sql"),
    (
        "llm_max_lora_rank",
        {**_SGLANG, "llm_lora_adapters": "sql=org/sql", "llm_max_lora_rank": "64"},
        ARGS,
        "--max-lora-rank=64",
    ),
    *(
        (field, {**_TENSORRT_LLM, field: typed}, OPTIONS, option)
        for field, typed, option in (
            ("llm_max_model_len", "8192", '"max_seq_len": 8192'),
            ("llm_max_num_seqs", "64", '"max_batch_size": 64'),
            ("llm_max_num_batched_tokens", "4096", '"max_num_tokens": 4096'),
            ("llm_max_num_batched_tokens", "4096", '"enable_chunked_prefill": true'),
            ("llm_kv_cache_dtype", "fp8_e4m3", '"kv_cache_config": {"dtype": "fp8"'),
            ("llm_prefix_caching", "off", '"enable_block_reuse": false'),
            ("llm_enforce_eager", "on", '"cuda_graph_config": null'),
            ("precision", "bf16", '"dtype": "bfloat16"'),
        )
    ),
    ("llm_kv_cache_dtype", {**_VLLM, "llm_kv_cache_dtype": "fp8"}, ARGS, "--kv-cache-dtype=fp8"),
    ("llm_quantization", {**_VLLM, "llm_quantization": "fp8"}, ARGS, "--quantization=fp8"),
    (
        "llm_max_num_batched_tokens",
        {**_VLLM, "llm_max_num_batched_tokens": "4096"},
        ARGS,
        "--max-num-batched-tokens=4096",
    ),
    ("llm_enforce_eager", {**_VLLM, "llm_enforce_eager": "on"}, ARGS, "--enforce-eager"),
    ("llm_lora_adapters", {**_VLLM, "llm_lora_adapters": "sql=org/sql"}, ARGS, "sql=org/sql"),
    (
        "llm_max_lora_rank",
        {**_VLLM, "llm_lora_adapters": "sql=org/sql", "llm_max_lora_rank": "64"},
        ARGS,
        "--max-lora-rank=64",
    ),
    (
        "llm_prefix_caching",
        {**_VLLM, "llm_prefix_caching": "off"},
        ARGS,
        "--no-enable-prefix-caching",
    ),
]
