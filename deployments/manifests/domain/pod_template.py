"""Parts that pods of all engines share: probes, termination and security."""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain.metadata import HUGGING_FACE_CREDENTIALS, ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.gpus.domain import neuron

_PROBE_SECONDS = 5
# Short enough to restart a hung container soon, long enough to survive a minute under load.
_LIVENESS = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}
_START_SECONDS = 180
# For a new node, the image and the download, before the container starts.
_EARLIER_SECONDS = 20 * 60
# From a page cache on a busy node to the GPU; measured ones are several times faster.
_LOAD_MIB_PER_SECOND = 50
# TensorRT builds its engine when the model is loaded for the first time on a node.
_ENGINE_BUILD_SECONDS = 20 * 60
# A language model without a declared size.
_LLM_START_SECONDS = 30 * 60
# From a hub or a bucket, with the start of vLLM and its captured graphs on top.
_DOWNLOAD_MIB_PER_SECOND = 100
_LLM_LEAST_SECONDS = 10 * 60
_MIB_PER_MILLION_PARAMETERS = 2
# Neuron compiles a model at its first start: some 15 minutes for 15 GB of weights (AWS's guide of vLLM on Neuron).
_NEURON_COMPILE_SECONDS = 60 * 60
_USER = 1000
SCRATCH: Final = "/tmp"  # noqa: S108  a mount point inside the pod
_SHARED_MEMORY = "/dev/shm"  # noqa: S108  a mount point inside the pod


def rolling_update() -> dict[str, Any]:
    """Return the strategy of an update. A new pod is ready before an old one stops; without a free GPU it waits
    and the old one serves.
    """
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def start_seconds(served: ServedRevision) -> int:
    """Return the seconds that a container may take until it serves, by the size of the model."""
    spec = served.spec
    if spec.llm is not None:
        compiles = _NEURON_COMPILE_SECONDS if spec.gpu_resource == neuron.DEVICE else 0
        return _language_start_seconds(spec.llm.parameters_millions) + compiles
    mib = served.size_mib * spec.instances_per_gpu
    for model, tuning in zip(served.additional_models, spec.additional_models, strict=True):
        mib += model.size_mib * tuning.instances_per_gpu
    precisions = [spec.precision, *(tuning.precision for tuning in spec.additional_models)]
    builds = sum(precision != "original" for precision in precisions)
    return _START_SECONDS + mib // _LOAD_MIB_PER_SECOND + builds * _ENGINE_BUILD_SECONDS


def progress_seconds(served: ServedRevision) -> int:
    """Return the seconds that a rollout of the pods may make no progress before it counts as failed."""
    return _EARLIER_SECONDS + start_seconds(served)


def _language_start_seconds(parameters_millions: int) -> int:
    """Return the seconds until a language model serves: vLLM downloads the weights after the container has
    started, then loads them.
    """
    if not parameters_millions:
        return _LLM_START_SECONDS
    mib = parameters_millions * _MIB_PER_MILLION_PARAMETERS
    return _LLM_LEAST_SECONDS + mib // _DOWNLOAD_MIB_PER_SECOND + mib // _LOAD_MIB_PER_SECOND


def probes(served: ServedRevision, *, ready: str, live: str, port: int = 8080) -> dict[str, Any]:
    """Return the probes. The startup probe delays the others, so that a slow load does not count as a hang."""
    attempts = -(-start_seconds(served) // _PROBE_SECONDS)
    return {
        "startupProbe": get(ready, port, periodSeconds=_PROBE_SECONDS, failureThreshold=attempts),
        "livenessProbe": get(live, port, **_LIVENESS),
        "readinessProbe": get(ready, port, periodSeconds=_PROBE_SECONDS, failureThreshold=3),
    }


def get(path: str, port: int = 8080, **numbers: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": port}, **numbers}


def shared_memory(spec: ServingSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the volume and its mount. Triton's Python backend and tensor parallelism need it."""
    source = {"medium": "Memory"}
    if spec.storage.shm_size:
        source["sizeLimit"] = spec.storage.shm_size
    return {"name": "shm", "emptyDir": source}, {"name": "shm", "mountPath": _SHARED_MEMORY}


def security(*, is_read_only: bool = False) -> dict[str, Any]:
    """Return the security context of each container, as Pod Security *restricted* requires; Knative accepts it
    here only.

    `is_read_only`: the server writes to SCRATCH and its volumes only.
    """
    fields: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {**fields, "readOnlyRootFilesystem": True} if is_read_only else fields


def restrict_pod(spec: ServingSpec) -> dict[str, Any]:
    """Return the fields of every pod spec: no token of the cluster's API, and a context that also holds for
    containers which KServe or a webhook adds. A role (IRSA, Pod Identity) has a token of its own.
    """
    fields: dict[str, Any] = {"automountServiceAccountToken": False}
    if spec.scaling.kind == serving_spec.KNATIVE:
        # Knative refuses a security context of the pod unless its configuration was changed.
        return fields
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if spec.storage.model_cache == "volume":
        # Where the volume's driver applies groups (FSx for Lustre), the user may then write to it.
        context |= {"fsGroup": _USER, "fsGroupChangePolicy": "OnRootMismatch"}
    return {**fields, "securityContext": context}


def scratch() -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return the volume, its mount and HOME, for servers whose root cannot be written."""
    volume = {"name": "scratch", "emptyDir": {}}
    return volume, {"name": "scratch", "mountPath": SCRATCH}, {"name": "HOME", "value": SCRATCH}


def hugging_face_env(served: ServedRevision) -> dict[str, Any]:
    """Return the environment variable with the Hugging Face token. Its Secret is optional unless the weights
    are gated.
    """
    llm = served.spec.llm
    is_optional = llm is None or not llm.gated
    key = {"name": HUGGING_FACE_CREDENTIALS, "key": "HF_TOKEN", "optional": is_optional}
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": key}}


def user_env() -> dict[str, str]:
    """Return the user's name in the environment: PyTorch looks it up for its caches, and the image has none for
    this user id.
    """
    return {"name": "USER", "value": "slipway"}
