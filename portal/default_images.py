"""Images that new revisions run where neither a setting nor the cluster's serving policy names one."""

from typing import Final

TRITON: Final = "nvcr.io/nvidia/tritonserver:26.07-py3"
TRITON_VLLM: Final = "nvcr.io/nvidia/tritonserver:26.07-vllm-python-py3"
# The newest release that `make test-engines` ran.
VLLM: Final = "vllm/vllm-openai:v0.32.0"
# The newest of AWS that serves on inf2 and trn1; those of vLLM 0.21 and later serve on trn2 and trn3 only.
VLLM_NEURON: Final = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.16.0-neuronx-py312-sdk2.30.0-ubuntu24.04"
SGLANG: Final = "lmsysorg/sglang:v0.5.23"
TENSORRT_LLM: Final = "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"
STORAGE_INITIALIZER: Final = "kserve/storage-initializer:v0.20.0"
ALLOWED: Final = (
    "nvcr.io/nvidia/tritonserver, vllm/vllm-openai, lmsysorg/sglang, "
    "nvcr.io/nvidia/tensorrt-llm/release, public.ecr.aws/neuron/pytorch-inference-vllm-neuronx, kserve/*"
)
