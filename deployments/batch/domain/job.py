"""The Kubernetes objects of a batch job: an Indexed Job whose indexes are its workers, and their links."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments.access.domain import catalogue
from deployments.batch.domain import program, worker_store
from deployments.batch.domain.settings import BatchSettings
from deployments.manifests.domain import (
    namespace,
    network,
    pod_placement,
    pod_template,
    triton_args,
)
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    WORKLOAD_LABEL,
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
)
from deployments.manifests.domain.model_files import download
from deployments.spec.domain.engines import TRITON
from deployments.spec.domain.placement import catalogue as placements
from deployments.spec.domain.placement.pod_parts import PodContext
from deployments.spec.domain.serving_spec import Network, ServingSpec
from fleet.clusters.domain.provisioner import NOT_PROBED

API_VERSION: Final = "batch/v1"
KIND: Final = "Job"
CONTAINER: Final = "worker"
PLAN: Final = "SLIPWAY_BATCH"
LINKS: Final = "SLIPWAY_CHUNKS_"
# Without the portal, the cluster removes the Job itself.
TTL_SECONDS: Final = 3600
# Of a worker's own failures; what a node or the links end does not count.
BACKOFF_LIMIT: Final = 5
# Within the two minutes' notice of a spot node, for the chunk at hand.
GRACE_SECONDS: Final = 90
_MESSAGE_PATH: Final = "/dev/termination-log"


def name_of(job_id: int, attempt: int) -> str:
    """Return the name of the Job and of its Secret. It is the same in each pass over one attempt, so that the Job
    is found again.
    """
    return f"batch-{job_id}-{attempt}"


def spec_of(settings: BatchSettings) -> ServingSpec:
    """Return the settings that the pods share with those of a deployment. Nobody calls them."""
    return ServingSpec(
        engine=TRITON,
        instance_type=settings.instance_type,
        gpu_resource=settings.gpu_resource,
        cpu=settings.cpu,
        memory=settings.memory,
        placement=settings.placement,
        network=Network(access=catalogue.UNCHECKED.name),
    )


def build_shared(context: ManifestContext) -> list[Manifest]:
    """Return the objects that the pods need in the team's namespace, without Secrets and quota."""
    return [
        namespace.namespace(context),
        network.default_deny(context),
        network.batch(context),
        namespace.service_account(context),
    ]


def links(context: ManifestContext, *, name: str, urls: Mapping[int, str]) -> Manifest:
    """Build the Secret with the address of each worker's list of chunks. Whoever has an address reads and writes
    its chunks.
    """
    data = {f"{LINKS}{index}": _encode(url) for index, url in sorted(urls.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": context.namespace,
            "labels": {**MANAGED_BY, "slipway.dev/team": context.team},
        },
        "data": data,
    }


def job(
    context: ManifestContext,
    served: ServedRevision,
    settings: BatchSettings,
    *,
    name: str,
    workers: int,
) -> Manifest:
    labels = labels_of(context, name)
    plan = {"model": served.model_name, "requests": settings.requests}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": context.namespace,
            "labels": {**labels, **pod_placement.place(context, served).workload_labels},
        },
        "spec": {
            **suspension(context, served),
            "completionMode": "Indexed",
            "completions": workers,
            "parallelism": workers,
            "backoffLimitPerIndex": BACKOFF_LIMIT,
            "podFailurePolicy": {"rules": failure_rules()},
            "activeDeadlineSeconds": settings.hours * 3600,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {
                "metadata": pod_metadata(context, served, labels),
                "spec": pod(context, served, name=name, text=program.TEXT, plan=plan),
            },
        },
    }


def labels_of(context: ManifestContext, name: str) -> dict[str, str]:
    return {
        **MANAGED_BY,
        "slipway.dev/team": context.team,
        network.BATCH_LABEL: name,
        # Its GPUs and cost are the team's.
        WORKLOAD_LABEL: name,
    }


def pod_metadata(
    context: ManifestContext, served: ServedRevision, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the metadata of a worker's pod. `labels` are those of its Job."""
    parts = pod_placement.place(context, served).parts
    return {
        "labels": {**labels, **parts.labels},
        "annotations": {"slipway.dev/version": served.version_label, **parts.annotations},
    }


def suspension(context: ManifestContext, served: ServedRevision) -> dict[str, bool]:
    """Return the field of a Job that waits until its placement lets it start. Empty if it starts at once."""
    return {"suspend": True} if pod_placement.place(context, served).parts.suspends_job else {}


def dependent_objects(
    context: ManifestContext, served: ServedRevision, labels: Mapping[str, str]
) -> list[Manifest]:
    """Return the objects that the placement of the workers needs, such as a template of claims."""
    meta = {"namespace": context.namespace, "labels": dict(labels)}
    return [
        pod_placement.manifest_of(one, {"name": one.name, **meta})
        for one in pod_placement.place(context, served).parts.objects
    ]


def dependent_kinds(settings: BatchSettings) -> list[tuple[str, str]]:
    """List API version and kind of the dependent objects, for their removal."""
    nameless = PodContext(NOT_PROBED, "", {})
    objects = placements.write(spec_of(settings), nameless).objects
    return sorted({(one.api_version, one.kind) for one in objects})


def failure_rules() -> list[dict[str, Any]]:
    """Return the rules of the Job's pod failure policy, of which the first match counts."""
    codes = {"containerName": CONTAINER, "operator": "In"}
    return [
        {
            # Reclaimed, drained, evicted, or its node is gone.
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        },
        {"action": "Ignore", "onExitCodes": {**codes, "values": [worker_store.EXPIRED]}},
        {"action": "FailJob", "onExitCodes": {**codes, "values": [worker_store.NEVER]}},
    ]


def pod(
    context: ManifestContext,
    served: ServedRevision,
    *,
    name: str,
    text: str,
    plan: Mapping[str, Any],
    env: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Build the spec of a worker's pod. `text` is the program, which reads its `plan` and starts Triton."""
    scratch_volume, scratch_mount, home = pod_template.scratch()
    shm_volume, shm_mount = pod_template.shared_memory(served.spec)
    pods = pod_placement.place(context, served)
    container = {
        "name": CONTAINER,
        "image": context.triton_image,
        "command": ["python3", "-c", text],
        "args": [_MESSAGE_PATH, *triton_args.command(), *triton_args.settings_of(served)],
        "env": [{"name": PLAN, "value": json.dumps(plan)}, home, *env],
        "envFrom": [{"secretRef": {"name": name}}],
        "resources": pods.resources,
        "securityContext": pod_template.security(is_read_only=True),
        "terminationMessagePath": _MESSAGE_PATH,
        "volumeMounts": [download.server_mount(served), shm_mount, scratch_mount],
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": account_of(served),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        **pod_template.restrict_pod(served.spec),
        **pods.fields,
        "initContainers": download.containers(context, served),
        "containers": [container],
        "volumes": [download.volume(served), shm_volume, scratch_volume],
    }


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
