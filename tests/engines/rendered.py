"""The server of a rendered pod of vLLM as a process of this machine: the very command, arguments and environment, of
which only what names the accelerator, the container's paths and its port is exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deployments.manifests.domain import pod_template, revision, vllm
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.spec.domain.engines import KSERVE_VLLM, default_grace_seconds
from deployments.spec.domain.serving_spec import ServingSpec
from portal import default_images

MODEL: Final = "chat"
ADAPTER: Final = "sql"
# What the manifest names in place of the folders that a test writes.
_ADAPTER_ID: Final = "org/sql"
_CONTEXT: Final = ManifestContext(
    team="vision",
    namespace="vision",
    deployment="chat",
    deployment_id=7,
    is_local_cluster=False,
    gateway_namespace="slipway-gateway",
    gateway_name="slipway",
    triton_image=default_images.TRITON,
    storage_image=default_images.STORAGE_INITIALIZER,
    vllm_image=default_images.VLLM,
)
# A processor computes in 32 bits, has one GiB for the KV cache, and shares its cores with the tests.
_ON_PROCESSOR: Final = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
# Nothing of a test leaves this machine.
_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


@dataclass(frozen=True, slots=True)
class Container:
    """A container as KServe starts it: the runtime's, with the fields of the InferenceService."""

    command: list[str]
    env: Mapping[str, str]


def spec_with(**llm: Any) -> ServingSpec:
    data = {
        "engine": KSERVE_VLLM,
        "instance_type": "g5.xlarge",
        "image": default_images.VLLM,
        "termination_grace_seconds": default_grace_seconds(KSERVE_VLLM),
        "llm": {"hugging_face_id": "org/model", "max_model_len": 512, "enforce_eager": True, **llm},
    }
    return ServingSpec.from_json(data)


def render(spec: ServingSpec) -> Container:
    served = ServedRevision(1, MODEL, "chat:1", "ab" * 32, "s3://bucket/chat/1/", spec)
    shared = revision.build_shared(_CONTEXT, served)
    runtime = _of_kind("ServingRuntime", shared)["spec"]["containers"][0]
    workload = _of_kind("InferenceService", revision.build_own(_CONTEXT, served))
    model = workload["spec"]["predictor"]["model"]
    env = {
        item["name"]: item["value"] for item in [*runtime["env"], *model["env"]] if "value" in item
    }
    # As KServe merges them: arguments are appended, a command replaces that of the runtime.
    command = model.get("command", runtime["command"])
    return Container([*command, *runtime["args"], *model["args"]], env)


def _of_kind(kind: str, manifests: list[Manifest]) -> Manifest:
    return next(manifest for manifest in manifests if manifest["kind"] == kind)


def exchange_command(
    container: Container, *, port: int, model: Path, adapter: Path | None = None
) -> list[str]:
    """Return the command for this machine."""
    exchanged = {
        "--port=8080": f"--port={port}",
        vllm.MODELS: str(model),
        "--dtype=auto": "--dtype=float32",
        f"{ADAPTER}={_ADAPTER_ID}": f"{ADAPTER}={adapter}",
    }
    command = (exchanged.get(argument, argument) for argument in container.command)
    return [*command, "--host=127.0.0.1"]


def exchange_environment(container: Container, folder: Path) -> dict[str, str]:
    """Return the environment for this machine: caches in the folder of the test."""
    moved = {
        name: value.replace(pod_template.SCRATCH, str(folder), 1)
        for name, value in container.env.items()
    }
    return {**moved, **_ON_PROCESSOR, **_OFFLINE}
