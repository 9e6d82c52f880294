"""The Job of a load test: one pod, tried once, that loads the files as serving does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from deployments.load_tests.domain import pod_program, pod_values
from deployments.load_tests.domain.choice import PodChoice
from deployments.manifests.domain import namespace, network, pod_template, triton_args
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    WORKLOAD_LABEL,
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
)
from deployments.manifests.domain.model_files import download
from fleet.gpus.domain import tolerations

API_VERSION: Final = "batch/v1"
KIND: Final = "Job"
CONTAINER: Final = "load-test"
PLAN: Final = "SLIPWAY_LOAD_TEST"
# Without the portal, the cluster removes the Job itself.
TTL_SECONDS: Final = 600
_MESSAGE_PATH: Final = "/dev/termination-log"
# Lines of the second text that only an import of the repository needs, or that have to stand first.
_NOT_IN_THE_POD: Final = ("from __future__ ", "from deployments.")


def _join_program() -> str:
    """Return the text that the pod runs: one program of two modules."""
    first, second = (
        Path(place).read_text() for place in (pod_values.__file__, pod_program.__file__)
    )
    lines = [line for line in second.splitlines() if not line.startswith(_NOT_IN_THE_POD)]
    return "\n".join([first, *lines, ""])


_PROGRAM: Final = _join_program()


def name_of(version_id: int, attempt: str) -> str:
    """Return the name of the Job. It is the same for each pass over one test, so that the Job is found again."""
    return f"load-test-{version_id}-{attempt}"


def build_shared(context: ManifestContext) -> list[Manifest]:
    """Return the objects that the pods need in the namespace of the team, without Secret and quota."""
    return [
        namespace.namespace(context),
        network.default_deny(context),
        network.load_tests(context),
        namespace.service_account(context),
    ]


def job(
    context: ManifestContext, served: ServedRevision, choice: PodChoice, *, name: str, plan: str
) -> Manifest:
    labels = {
        **MANAGED_BY,
        "slipway.dev/team": context.team,
        network.LOAD_TEST_LABEL: name,
        # Its GPU and cost are the team's.
        WORKLOAD_LABEL: name,
    }
    annotations = {
        "slipway.dev/version": served.version_label,
        # A node that is moved to save costs would end the test.
        "karpenter.sh/do-not-disrupt": "true",
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": context.namespace, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": choice.minutes * 60,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": _pod(context, served, choice, plan),
            },
        },
    }


def _pod(
    context: ManifestContext, served: ServedRevision, choice: PodChoice, plan: str
) -> dict[str, Any]:
    scratch_volume, scratch_mount, home = pod_template.scratch()
    shm_volume, shm_mount = pod_template.shared_memory(served.spec)
    amounts = {"cpu": choice.cpu, "memory": choice.memory}
    if choice.gpu_resource:
        amounts[choice.gpu_resource] = "1"
    env = [{"name": PLAN, "value": plan}, home]
    if not choice.gpu_resource:
        # Triton's image requests all GPUs of the node from runtimes that honour images.
        env.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})
    container = {
        "name": CONTAINER,
        "image": context.triton_image,
        "command": ["python3", "-c", _PROGRAM],
        "args": [_MESSAGE_PATH, *triton_args.command()],
        "env": env,
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": pod_template.security(is_read_only=True),
        "terminationMessagePath": _MESSAGE_PATH,
        "volumeMounts": [download.server_mount(served), shm_mount, scratch_mount],
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": account_of(served),
        "terminationGracePeriodSeconds": 5,
        **pod_template.restrict_pod(served.spec),
        **_placement(choice),
        "initContainers": download.containers(context, served),
        "containers": [container],
        "volumes": [download.volume(served), shm_volume, scratch_volume],
    }


def _placement(choice: PodChoice) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if choice.instance_type:
        fields["nodeSelector"] = {"node.kubernetes.io/instance-type": choice.instance_type}
    if choice.gpu_resource or choice.instance_type:
        # Nodes of the chosen type may be kept for pods with GPUs.
        fields["tolerations"] = [tolerations.GPU.manifest()]
    return fields
