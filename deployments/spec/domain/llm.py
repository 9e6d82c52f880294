"""A language model of an engine that serves one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from deployments.spec.domain import field_rules
from deployments.spec.domain.applicability import limit_to_engines, needs
from deployments.spec.domain.engines import (
    COPYING_ENGINES,
    KSERVE_SGLANG,
    KSERVE_VLLM,
    LLM_SERVICE,
    VLLM_ENGINES,
)
from portal.core.definitions import Definition, setting


class Llm(Definition):
    """A language model: its weights and its limits."""

    hugging_face_id: Annotated[
        str,
        setting(
            "Hugging Face id",
            "For example Qwen/Qwen3-8B. Add :commit to pin it.",
            pattern=r"([A-Za-z0-9][-A-Za-z0-9_.]{0,95}/[A-Za-z0-9][-A-Za-z0-9_.]{0,95}"
            r"(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,63})?)?",
            max_length=200,
            fix="Use organisation/model or organisation/model:commit, for example Qwen/Qwen3-8B.",
        ),
    ] = ""
    artifact: Annotated[
        str,
        setting(
            "Or your own weights",
            "pvc://claim/path or oci://registry/image:tag.",
            pattern=r"((pvc|oci)://[a-z0-9][-a-zA-Z0-9._/:@]{0,250})?",
            max_length=260,
            fix="Use pvc://claim/path or oci://registry/image:tag.",
        ),
    ] = ""
    gated: Annotated[
        bool,
        setting(
            "Gated weights",
            "Downloaded with HF_TOKEN of the Secret slipway-hugging-face in the team's namespace.",
        ),
    ] = False
    parameters_millions: Annotated[
        int,
        setting(
            "Parameters",
            "In millions: 8,030 for an 8B model. Used for GPU memory and load time.",
            unit="million",
            ge=0,
            le=10_000_000,
            fix="Enter millions: 8030 for 8 billion, or 0 if unknown.",
            is_empty_zero=True,
            has_separators=True,
        ),
    ] = 0
    tensor_parallel: Annotated[
        int,
        AfterValidator(field_rules.check_gpus_of_a_node),
        setting(
            "Tensor parallel",
            "GPUs of a pod that the model is split across.",
            fix="Use 1, 2, 4, 8 or 16. It must divide the number of attention heads.",
        ),
    ] = 1
    data_parallel: Annotated[
        int,
        AfterValidator(field_rules.check_gpus_of_a_node),
        setting(
            "Data parallel",
            "Copies of the model in a pod, each on GPUs of its own. The server spreads requests over them.",
            fix="Use 1, 2, 4, 8 or 16 copies.",
        ),
        limit_to_engines(
            COPYING_ENGINES,
            f"{{engine}} runs one copy in a pod. Add replicas, or use {KSERVE_VLLM}.",
        ),
    ] = 1
    nodes: Annotated[
        int,
        setting(
            "Nodes",
            "Pods of one replica. kserve-vllm splits the layers across them; llm-inference-service runs "
            "data_parallel copies of the model in each.",
            ge=1,
            le=16,
            fix="Use 1 to 16 nodes.",
        ),
        limit_to_engines(
            (KSERVE_VLLM, LLM_SERVICE),
            f"{{engine}} runs on one node. Use {KSERVE_VLLM} or {LLM_SERVICE}.",
        ),
    ] = 1
    max_model_len: Annotated[
        int,
        AfterValidator(field_rules.check_context_length),
        setting(
            "Max context length",
            "Default: the model's maximum.",
            unit="tokens",
            fix="Use 128 to 2000000 tokens, or 0 for the model's own length.",
            is_empty_zero=True,
        ),
    ] = 0
    gpu_memory_utilization: Annotated[
        float,
        setting(
            "GPU memory for vLLM",
            "For weights, activations and KV cache.",
            unit="%",
            ge=0.1,
            le=0.98,
            fix="Use 0.1 to 0.98 of the GPU's memory for weights, activations and KV cache.",
        ),
        limit_to_engines(
            VLLM_ENGINES,
            "SGLang divides the memory differently: use mem_fraction_static. TensorRT-LLM takes nine "
            "tenths of what the weights leave: remove it.",
        ),
    ] = 0.9
    mem_fraction_static: Annotated[
        float,
        AfterValidator(field_rules.check_static_fraction),
        setting(
            "GPU memory for SGLang",
            "For weights and KV cache; the rest is for activations and CUDA graphs. Leave empty for SGLang's "
            "choice for the GPU.",
            unit="%",
            fix="Use 0.1 to 0.98 of the GPU's memory for weights and KV cache, or 0 for SGLang's choice.",
            is_empty_zero=True,
        ),
        limit_to_engines(
            (KSERVE_SGLANG,), "Only SGLang uses it. For vLLM use gpu_memory_utilization."
        ),
    ] = 0.0
    quantization: Annotated[
        Literal["auto", "fp8", "bitsandbytes"],
        setting(
            "Quantisation",
            "auto: as the weights are stored. fp8 (8 bits) and bitsandbytes (4 bits) are applied while "
            "loading.",
        ),
    ] = "auto"
    kv_cache_dtype: Annotated[
        Literal["auto", "fp8", "fp8_e4m3", "fp8_e5m2"], setting("KV cache", "fp8 halves it.")
    ] = "auto"
    max_num_seqs: Annotated[
        int,
        setting(
            "Concurrent requests",
            "Leave empty for the server's default.",
            ge=0,
            le=4096,
            fix="Use up to 4096 requests at a time, or 0 for the server's default.",
            is_empty_zero=True,
        ),
    ] = 0
    max_num_batched_tokens: Annotated[
        int,
        AfterValidator(field_rules.check_tokens_per_step),
        setting(
            "Tokens per step",
            "Longer prompts are computed in parts of this size. Leave empty for the server's default.",
            unit="tokens",
            fix="Use 128 to 131072 tokens, or 0 for the server's default.",
            is_empty_zero=True,
        ),
    ] = 0
    prefix_caching: Annotated[
        bool, setting("Prefix caching", "Shared prompt prefixes are computed once.")
    ] = True
    prefix_routing: Annotated[
        bool,
        setting(
            "Route by prefix cache",
            "A request goes to the pod whose cache holds its prefix, or else to the least loaded pod.",
        ),
        limit_to_engines(
            (LLM_SERVICE,),
            f"KServe writes an endpoint picker for {LLM_SERVICE} only. Use it, or turn this off.",
        ),
        needs({True: "prefix-routing"}),
    ] = False
    enforce_eager: Annotated[
        bool,
        setting(
            "No CUDA graphs",
            "Starts sooner and uses less GPU memory; tokens take longer.",
        ),
    ] = False
    lora_adapters: Annotated[
        str,
        AfterValidator(field_rules.check_lora_adapters),
        setting(
            "LoRA adapters",
            "Comma-separated, for example sql=org/sql-lora. A request names one as its model: sql, for "
            "SGLang model:sql.",
            max_length=2000,
            fix="Use up to 8 adapters with different names: name=organisation/adapter, comma-separated.",
        ),
        limit_to_engines(
            COPYING_ENGINES,
            f"{{engine}} takes no adapter by its name. Use {KSERVE_VLLM}.",
        ),
    ] = ""
    max_lora_rank: Annotated[
        int,
        AfterValidator(field_rules.check_lora_rank),
        setting(
            "Max LoRA rank",
            "An adapter of a higher rank is refused at start.",
            fix="Use 8, 16, 32, 64, 128, 256, 320 or 512.",
        ),
        limit_to_engines(
            COPYING_ENGINES,
            f"{{engine}} takes no adapter by its name. Use {KSERVE_VLLM}.",
        ),
    ] = 16

    @property
    def gpus_of_pod(self) -> int:
        return self.tensor_parallel * self.data_parallel

    @property
    def adapters(self) -> list[str]:
        """The adapters, each as name=organisation/adapter."""
        return field_rules.split_list(self.lora_adapters)
