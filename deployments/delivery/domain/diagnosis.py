"""Why a workload does not come up, in plain words, from what the cluster and its logs say.

Each case names what is wrong and what mends it, and quotes the telling line. Terminal means that
waiting alone will not help; what merely waits (for a node, for a pull that may work again) is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LONGEST_QUOTE: Final = 300


@dataclass(frozen=True, slots=True)
class Diagnosis:
    reason: str
    words: str
    is_terminal: bool


@dataclass(frozen=True, slots=True)
class _Case:
    """`pattern` is looked for in each line; the first case that matches any line is told."""

    reason: str
    pattern: re.Pattern[str]
    words: str
    is_terminal: bool = True


def _case(reason: str, pattern: str, words: str, *, is_terminal: bool = True) -> _Case:
    return _Case(reason, re.compile(pattern, re.IGNORECASE), words, is_terminal)


# The more telling first: a log that ends with "failed to load" often has the cause above it.
_CASES: Final[Sequence[_Case]] = (
    _case(
        "CUDA mismatch",
        r"CUDA driver version is insufficient|unsupported display driver|forward compatibility was "
        r"attempted|no kernel image is available|provided PTX was compiled with an unsupported",
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
        "out of GPU memory",
        r"CUDA (error: )?out of memory|CUDA failure 2\b|cudaErrorMemoryAllocation|"
        r"failed to allocate CUDA memory|CUBLAS_STATUS_ALLOC_FAILED|"
        r"No available memory for the cache blocks|Free memory on device .* less than desired",
        "the model does not fit the GPU memory: take a larger GPU or share, lower precision, batch "
        "or context",
    ),
    _case(
        "context too long",
        r"max seq len .* larger than the maximum number of tokens that can be stored in KV cache|"
        r"KV cache .* larger than the available KV cache memory",
        "the context does not fit beside the weights: lower max_model_len, or take more GPU memory",
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
        "the registry refuses the pull: the namespace needs a pull secret, or the node role access",
    ),
    _case(
        "registry busy",
        r"toomanyrequests|rate limit|429 Too Many Requests|i/o timeout|TLS handshake timeout",
        "the registry does not answer or throttles; it is tried again",
        is_terminal=False,
    ),
    _case(
        "storage access denied",
        r"AccessDenied|Access Denied|\(403\)|InvalidAccessKeyId|SignatureDoesNotMatch|"
        r"NoCredentialsError|Unable to locate credentials|not authorized to perform",
        "the bucket refuses to be read: give the pods' service account its role, with s3:GetObject "
        "and s3:ListBucket",
    ),
    _case(
        "missing object",
        r"NoSuchKey|NoSuchBucket|\(404\)|specified (key|bucket) does not exist|"
        r"Failed to fetch model\. No model found|is gated|RepositoryNotFoundError",
        "what is to be served is not where it should be: check the bucket, or that the model's "
        "licence was accepted",
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
        "the node has no disk space left for the image or the model: larger nodes' disks",
    ),
    _case(
        "quota",
        r"exceeded quota",
        "the namespace's quota is used up: free some, or have it raised",
    ),
    _case(
        "refused by a policy",
        r"admission webhook .* denied|violates PodSecurity|is forbidden:",
        "a rule of the cluster refuses the pod",
    ),
    _case(
        "model cannot be loaded",
        r"failed to load '?[\w./-]+'? version|failed to load model|failed to load all models|"
        r"onnx runtime error|Unsupported model IR version|Invalid argument: unable to find|"
        r"must specify|unable to autofill|Protobuf parsing failed|Unknown model file format|"
        r"ValueError: .*(architecture|quantization|dtype)|Value error, |no version is available",
        "the server refuses the model",
    ),
    _case(
        "probe failure",
        r"(liveness|startup|readiness) probe failed",
        "it does not answer its health probe in time and is restarted: see its log, or give it "
        "longer to start",
    ),
    _case(
        "server option",
        r"unrecognized (option|arguments)|invalid choice|unknown flag",
        "the server does not know an option: the image is older or newer than the manifests expect",
    ),
)
# How KServe, Kubernetes and cloud say that the machine went, not the model.
_RECLAIM: Final = re.compile(
    r"spot|interruption|TerminationByKubelet|NodeShutdown|Terminated|node is shutting down|"
    r"node\.kubernetes\.io/not-ready|TaintManager|DeletionByTaintManager|PreemptionByScheduler",
    re.IGNORECASE,
)
_GPU_SHORT: Final = re.compile(r"Insufficient (nvidia\.com/[\w.-]*\w)")


def of_text(text: str) -> Diagnosis | None:
    """None when nothing known is in it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for case in _CASES:
        line = next((line for line in lines if case.pattern.search(line)), None)
        if line is not None:
            return Diagnosis(case.reason, f"{case.words}: {_quote(line)}", case.is_terminal)
    return None


def of_scheduling(message: str) -> Diagnosis:
    """A pod without a node waits: a node may come, by scaling up or when others end."""
    short = _GPU_SHORT.search(message)
    if short:
        words = f"waits for a free GPU ({short[1]}): {_quote(message)}"
        return Diagnosis("no GPU", words, is_terminal=False)
    return Diagnosis("waits for a node", f"waits for a node: {_quote(message)}", is_terminal=False)


def of_lost_pod(reason: str, message: str) -> Diagnosis:
    """A pod that failed as a whole: its node was taken, or it used too much."""
    told = _quote(message or reason or "the pod failed")
    if _RECLAIM.search(f"{reason} {message}"):
        words = f"its node was taken away (spot reclaim, shutdown or drain); another pod follows: {told}"
        return Diagnosis("node taken", words, is_terminal=False)
    found = of_text(message)
    return found or Diagnosis("pod failed", told, is_terminal=True)


def telling_of(log: str) -> str:
    """The line of a log that a case knows, else the last one; empty for an empty log."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    known = (line for case in _CASES for line in lines if case.pattern.search(line))
    return next(known, lines[-1] if lines else "")


def _quote(line: str) -> str:
    return line if len(line) <= _LONGEST_QUOTE else f"{line[: _LONGEST_QUOTE - 1]}…"
