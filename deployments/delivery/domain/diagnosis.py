"""Explain why a workload does not start, from the cluster's messages and its logs.

Each case names the problem and its fix, and quotes the line that shows it. Terminal means that
waiting alone will not help; waiting for a node, or for a pull that may succeed later, is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleet.gpus.domain import neuron

NOT_AS_APPROVED: Final = "not what was approved"
_MAX_QUOTE_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class Diagnosis:
    reason: str
    message: str
    is_terminal: bool


@dataclass(frozen=True, slots=True)
class _Case:
    """A known problem. `pattern` is searched in each line; the first case that matches any line is used."""

    reason: str
    pattern: re.Pattern[str]
    message: str
    is_terminal: bool = True


def _case(reason: str, pattern: str, message: str, *, is_terminal: bool = True) -> _Case:
    return _Case(reason, re.compile(pattern, re.IGNORECASE), message, is_terminal)


# The more specific first: a log that ends with "failed to load" often has the cause above it.
_CASES: Final[Sequence[_Case]] = (
    _case(
        NOT_AS_APPROVED,
        r": FAILED$|: FAILED open or read$|: not in the record$|no properly formatted checksum lines",
        "the downloaded files differ from the approved ones, so nothing was started from them: a "
        "platform admin must restore the bucket",
    ),
    _case(
        "CUDA mismatch",
        r"CUDA driver version is insufficient|unsupported display driver|forward compatibility was "
        r"attempted|no kernel image is available|provided PTX was compiled with an unsupported|"
        r"NVIDIA driver on your system is too old|unsatisfied condition: (cuda|driver)",
        "the image's CUDA does not fit the node's NVIDIA driver or GPU: choose an older image, or "
        "have the driver updated",
    ),
    _case(
        "no GPU in the container",
        r"no CUDA-capable device|No CUDA GPUs are available|NVIDIA driver was not detected|"
        r"found no NVIDIA driver|could not select device driver",
        "the container sees no GPU: the node's driver or device plugin is missing or broken",
    ),
    _case(
        "GPU memory in use",
        r"Free memory on device .* less than desired",
        "another process holds memory of this GPU, for example a pod that is still stopping: Kubernetes "
        "restarts the container; on a shared GPU lower gpu_memory_utilization",
        is_terminal=False,
    ),
    _case(
        "out of GPU memory",
        r"CUDA (error: )?out of memory|CUDA failure 2\b|cudaErrorMemoryAllocation|"
        r"failed to allocate CUDA memory|CUBLAS_STATUS_ALLOC_FAILED|"
        r"No available memory for the cache blocks|"
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "the model does not fit the GPU memory: use a larger GPU or share, or lower precision, batch "
        "or context",
    ),
    _case(
        "context too long",
        r"max seq len .* larger than the maximum number of tokens that can be stored in KV cache|"
        r"KV cache .* larger than the available KV cache memory",
        "the context does not fit in GPU memory with the weights: lower max_model_len, or take more GPU memory",
    ),
    _case(
        "image not found",
        r"manifest (for \S+ )?(not found|unknown)|: not found$|repository does not exist|"
        r"InvalidImageName|couldn't parse image",
        "the image does not exist under this name and tag",
    ),
    _case(
        "image refused",
        r"pull access denied|unauthorized: |401 Unauthorized|403 Forbidden|authentication required|"
        r"no basic auth credentials",
        "the registry denies the pull: the namespace needs a pull secret, or the node role access",
    ),
    _case(
        "registry busy",
        r"toomanyrequests|rate limit|429 Too Many Requests|i/o timeout|TLS handshake timeout",
        "the registry does not answer or throttles; Kubernetes retries",
        is_terminal=False,
    ),
    _case(
        "storage access denied",
        r"AccessDenied|Access Denied|\(403\)|InvalidAccessKeyId|SignatureDoesNotMatch|"
        r"NoCredentialsError|Unable to locate credentials|not authorized to perform",
        "the bucket denies access: give the pods' service account its role, with s3:GetObject "
        "and s3:ListBucket",
    ),
    _case(
        "missing object",
        r"NoSuchKey|NoSuchBucket|\(404\)|specified (key|bucket) does not exist|"
        r"Failed to fetch model\. No model found|is gated|RepositoryNotFoundError",
        "the model files are missing: check the bucket, or accept the model's licence",
    ),
    _case(
        "storage does not answer",
        r"EndpointConnectionError|Could not connect to the endpoint URL|ConnectTimeoutError|"
        r"Name or service not known|Temporary failure in name resolution",
        "the object store cannot be reached from the pod: check the network policy and the endpoint",
        is_terminal=False,
    ),
    _case(
        "no disk on the node",
        r"no space left on device|ephemeral-storage|DiskPressure",
        "the node has no disk space left for the image or the model: use larger node disks",
    ),
    _case(
        "quota",
        r"exceeded quota",
        "the namespace's quota is used up: free some, or ask a platform admin to raise it",
    ),
    _case(
        "refused by a policy",
        r"admission webhook .* denied|violates PodSecurity|is forbidden:",
        "a cluster policy rejects the pod",
    ),
    _case(
        "no such backend",
        r"unable to find backend library for backend",
        "the image of Triton lacks the backend of this format: choose an image that has it (the demo's "
        "Triton has the Python backend only), or another format of the model",
    ),
    _case(
        "plan for another GPU",
        r"engine plan file is generated on an incompatible device|"
        r"engine plan file is not compatible with this version of TensorRT|"
        r"(version|magic) ?tag does not match|header\.magicTag == ",
        "the TensorRT plan was built for another GPU or another version of TensorRT: build it on this "
        "instance type, with the TensorRT of the image",
    ),
    _case(
        "model cannot be loaded",
        r"failed to load '?[\w./-]+'? version|failed to load model|failed to load all models|"
        r"onnx runtime error|Unsupported model IR version|Invalid argument: unable to find|"
        r"must specify|unable to autofill|Protobuf parsing failed|Unknown model file format|"
        r"ValueError: .*(architecture|quantization|dtype)|Value error, |no version is available",
        "the server cannot load the model",
    ),
    _case(
        "probe failure",
        r"(liveness|startup|readiness) probe failed",
        "it fails its health probe and is restarted: check its log, or raise the start timeout",
    ),
    _case(
        "server option",
        r"unrecognized (option|arguments)|invalid choice|unknown flag",
        "the server does not know an option: the image is older or newer than the manifests expect",
    ),
)
_EVICTED_FOR_MEMORY: Final = re.compile(r"low on resource: memory", re.IGNORECASE)
_EVICTED_FOR_DISK: Final = re.compile(
    r"low on resource: ephemeral-storage|ephemeral local storage usage exceeds|DiskPressure",
    re.IGNORECASE,
)
# How Kubernetes and the cloud report that the node went away. The kubelet also reports an eviction for
# disk or memory as TerminationByKubelet, so those are recognised by their message first.
_RECLAIM: Final = re.compile(
    r"spot|interruption|TerminationByKubelet|NodeShutdown|Terminated|node is shutting down|"
    r"node\.kubernetes\.io/not-ready|TaintManager|DeletionByTaintManager|PreemptionByScheduler",
    re.IGNORECASE,
)
_INSUFFICIENT: Final = re.compile(r"(\d+) Insufficient ([\w./-]*\w)")
_RESOURCES: Final = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "disk"}
# The scheduler reports the first filter that a node fails; a node that lacks resources passed these.
_MISMATCH: Final = re.compile(r"didn't match Pod's node affinity|didn't match node selector")
_CAPACITY_TYPE: Final = re.compile(r"capacity-?type", re.IGNORECASE)
_NO_POOL: Final = re.compile(r"incompatible (with nodepool|requirements)")


def diagnose_text(text: str) -> Diagnosis | None:
    """Return the diagnosis of the first case that matches a line. None if no case matches."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for case in _CASES:
        line = next((line for line in lines if case.pattern.search(line)), None)
        if line is not None:
            return Diagnosis(case.reason, f"{case.message}: {_quote(line)}", case.is_terminal)
    return None


def diagnose_scheduling(message: str) -> Diagnosis:
    """Explain why a pod is not scheduled. The reason names the resource that otherwise suitable nodes lack.

    It is never terminal: a node may be added, or freed when other pods end.
    """
    lacking, quote = _lacking_resources(message), _quote(message)
    if lacking:
        reason = f"no {' or '.join(lacking)}"
        description = f"waiting for free {' and '.join(lacking)}: {quote}"
    elif _CAPACITY_TYPE.search(message):
        reason = "no node of this capacity type"
        description = f"no node has the capacity type requested (spot or on-demand): {quote}"
    elif _MISMATCH.search(message) or _NO_POOL.search(message):
        reason = "no node of this type"
        description = (
            "no node has the instance type, the capacity type (spot or on-demand) and the node labels "
            "requested: "
            f"{quote}"
        )
    else:
        reason, description = "waiting for a node", f"waiting for a node: {quote}"
    return Diagnosis(reason, description, is_terminal=False)


def _lacking_resources(message: str) -> list[str]:
    """Return the lacking resources: GPUs first, with the resource name of a share, then by how many nodes lack them."""
    nodes: dict[str, int] = {}
    for count, resource in _INSUFFICIENT.findall(message):
        name = _RESOURCES.get(resource, resource)
        if resource.startswith("nvidia.com/"):
            name = "GPU" if resource == "nvidia.com/gpu" else f"GPU ({resource})"
        elif resource == neuron.DEVICE:
            name = "Neuron device"
        nodes[name] = nodes.get(name, 0) + int(count)
    return sorted(
        nodes, key=lambda name: (not name.startswith(("GPU", "Neuron")), -nodes[name], name)
    )


def diagnose_lost_pod(reason: str, message: str) -> Diagnosis:
    """Explain a pod that failed as a whole: its node was removed, or it exceeded a limit."""
    quote = _quote(message or reason or "the pod failed")
    if _EVICTED_FOR_DISK.search(message):
        description = (
            f"the node ran out of disk and evicted the pod: use larger node disks: {quote}"
        )
        return Diagnosis("no disk on the node", description, is_terminal=True)
    if _EVICTED_FOR_MEMORY.search(message):
        description = (
            f"the node ran out of memory and evicted the pod; another node may take it: {quote}"
        )
        return Diagnosis("no memory on the node", description, is_terminal=False)
    if _RECLAIM.search(f"{reason} {message}"):
        description = (
            f"its node was removed (spot reclaim, shutdown or drain); a new pod starts: {quote}"
        )
        return Diagnosis("node taken", description, is_terminal=False)
    return diagnose_text(message) or Diagnosis("pod failed", quote, is_terminal=True)


def explaining_line(log: str) -> str:
    """Return the first line of the log for the first case that matches, else the last line. Empty for an empty log."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    matching = (line for case in _CASES for line in lines if case.pattern.search(line))
    return next(matching, lines[-1] if lines else "")


def _quote(line: str) -> str:
    return line if len(line) <= _MAX_QUOTE_LENGTH else f"{line[: _MAX_QUOTE_LENGTH - 1]}…"
