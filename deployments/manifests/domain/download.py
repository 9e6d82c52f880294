"""The init containers that bring the models into a pod and compare them with their record.

The portal writes them for KServe too: the download that KServe adds has no security context, so a
namespace that enforces Pod Security *restricted* refuses its pods (ADR 31).
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import digest_check, pod_template, triton_args, vllm
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision, secret_of
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Llm

# KServe adds no download of its own to a pod that has an init container of this name.
NAME: Final = "storage-initializer"
_VOLUME = "models"
# KServe mounts a claim and starts a container from an image; neither is downloaded.
_MOUNTED = ("pvc://", "oci://")


def is_in_pod(served: ServedRevision) -> bool:
    """False where KServe mounts the models instead, also from its cache on the nodes."""
    if served.spec.storage.model_cache == "cluster":
        return False
    return not any(uri.startswith(_MOUNTED) for uri, _ in _sources_of(served))


def containers(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    """Only what the registry holds has a record to compare with."""
    download = _download(context, served)
    if _loads_weights(served):
        return [download]
    return [download, digest_check.container(context, served, _mount())]


def volume() -> dict[str, Any]:
    return {"name": _VOLUME, "emptyDir": {}}


def server_mount() -> dict[str, Any]:
    return {**_mount(), "readOnly": True}


def _mount() -> dict[str, Any]:
    return {"name": _VOLUME, "mountPath": triton_args.MODELS}


def _loads_weights(served: ServedRevision) -> bool:
    """Whether vLLM loads the weights from its pod; in Triton it downloads them itself."""
    return served.spec.engine in (serving_spec.KSERVE_VLLM, serving_spec.LLM_SERVICE)


def _sources_of(served: ServedRevision) -> list[tuple[str, str]]:
    """Each source and its path in the pod."""
    if _loads_weights(served):
        return [(vllm.weights_uri(served, served.spec.llm or Llm()), triton_args.MODELS)]
    return triton_args.sources_of(served)


def _download(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    amounts = {"cpu": "1", "memory": "1Gi"}
    _, scratch, home = pod_template.scratch()
    container = {
        "name": NAME,
        "image": context.storage_image,
        "args": [part for source in _sources_of(served) for part in source],
        "env": [*_env(context, served), home],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": pod_template.security(is_read_only=True),
        # So that the pod's status says why a download failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_mount(), scratch],
    }
    # Weights come from a hub, which needs no keys of the portal's bucket.
    is_from_hub = _loads_weights(served)
    secret = served.spec.storage.secret if is_from_hub else secret_of(context, served)
    if secret:
        container["envFrom"] = [{"secretRef": {"name": secret}}]
    return container


def _env(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    values = {"AWS_DEFAULT_REGION": context.s3_region}
    if context.s3_endpoint:
        values["AWS_ENDPOINT_URL"] = context.s3_endpoint
        values["S3_USE_HTTPS"] = "1" if context.s3_endpoint.startswith("https://") else "0"
    env: list[dict[str, Any]] = [
        {"name": name, "value": value} for name, value in sorted(values.items()) if value
    ]
    if _loads_weights(served):
        env.append(pod_template.hugging_face_env(served))
    return env
