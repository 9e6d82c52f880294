"""The init containers that bring the models into a pod and compare them with their record.

The portal writes them for KServe too: the download that KServe adds has no security context, so a
namespace that enforces Pod Security *restricted* refuses its pods (ADR 30).
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import pod_template, triton_args, vllm
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision, secret_of
from deployments.manifests.domain.model_files import digest_check, model_volume
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Llm

# KServe adds no download of its own to a pod that has an init container of this name.
NAME: Final = "storage-initializer"
_VOLUME = "models"
# KServe mounts a claim and starts a container from an image; neither is downloaded.
_MOUNTED = ("pvc://", "oci://")


def is_in_pod(served: ServedRevision) -> bool:
    """Return whether the pod itself downloads the models. False where KServe mounts them instead, also from its
    cache on the nodes.
    """
    if served.spec.storage.model_cache == "cluster":
        return False
    return not any(uri.startswith(_MOUNTED) for uri, _ in _sources_of(served))


def containers(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    """Return the containers that download the models and check their digests. Weights from the hub are not
    checked, because only the registry's files have recorded digests; on a shared volume the download itself
    compares them, before others see the files.
    """
    download = _download(context, served)
    if _is_from_hub(served) or _is_shared(served):
        return [download]
    return [download, digest_check.container(context, served, _mount())]


def volume(served: ServedRevision) -> dict[str, Any]:
    if _is_shared(served):
        return model_volume.volume(served, _VOLUME)
    return {"name": _VOLUME, "emptyDir": {}}


def server_mount(served: ServedRevision) -> dict[str, Any]:
    mount = {**_mount(), "readOnly": True}
    if _is_shared(served):
        mount["subPath"] = model_volume.directory_of(served, _sources_of(served))
    return mount


def _mount() -> dict[str, Any]:
    return {"name": _VOLUME, "mountPath": triton_args.MODELS}


def _is_shared(served: ServedRevision) -> bool:
    return served.spec.storage.model_cache == "volume"


def _loads_weights(served: ServedRevision) -> bool:
    """Whether the server loads the weights from its pod; in Triton it downloads them itself."""
    return served.spec.engine in serving_spec.OPENAI_ENGINES


def _is_from_hub(served: ServedRevision) -> bool:
    """Whether the weights are not the portal's own."""
    return _loads_weights(served) and not served.files


def _sources_of(served: ServedRevision) -> list[tuple[str, str]]:
    """List each source and its path in the pod."""
    if _loads_weights(served):
        return [(vllm.weights_uri(served, served.spec.llm or Llm()), triton_args.MODELS)]
    return triton_args.sources_of(served)


def _download(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    amounts = {"cpu": "1", "memory": "1Gi"}
    _, scratch, home = pod_template.scratch()
    sources = _sources_of(served)
    container: dict[str, Any] = {
        "name": NAME,
        "image": context.storage_image,
        "args": [part for source in sources for part in source],
        "env": [*_env(context, served), home],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": pod_template.security(is_read_only=True),
        # So that the pod's status says why a download failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_mount(), scratch],
    }
    if _is_shared(served):
        container |= {
            "command": model_volume.command(),
            "args": model_volume.args(sources),
            "env": [*container["env"], *model_volume.env(served, sources)],
            "volumeMounts": [{"name": _VOLUME, "mountPath": model_volume.MOUNT}, scratch],
        }
    # Weights of a hub need no keys of the portal's bucket.
    is_from_hub = _is_from_hub(served)
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
    if _is_from_hub(served):
        env.append(pod_template.hugging_face_env(served))
    return env
