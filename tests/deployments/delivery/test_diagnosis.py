"""Messages of real servers, kubelets and registries, and the diagnosis of each."""

from __future__ import annotations

import pytest

from deployments.delivery.domain import diagnosis

TRITON_DRIVER = (
    "I0506 10:59:05.1 1 onnxruntime.cc:2400] TRITONBACKEND_ModelInitialize: densenet_onnx\n"
    "E0506 10:59:05.932885 1 model_repository_manager.cc:1234] failed to load 'densenet_onnx' "
    "version 1: Internal: onnx runtime error 1: CUDA failure 35: CUDA driver version is "
    "insufficient for CUDA runtime version ; GPU=32553"
)
VLLM_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 350.00 MiB. GPU 0 has a total "
    "capacity of 23.68 GiB of which 212.81 MiB is free."
)
TRITON_FORMAT = (
    "UNAVAILABLE: Internal: onnx runtime error 2: Failed to load model with error: Unknown model "
    "file format version."
)
# Of the Triton in the demo's wheel.
NO_BACKEND = (
    "E1123 01:09:17.488087 2971 model_lifecycle.cc:642] \"failed to load 'rows' version 1: Invalid "
    "argument: unable to find backend library for backend 'openvino', try specifying runtime on the "
    'model configuration."'
)


@pytest.mark.parametrize(
    ("text", "reason", "is_terminal"),
    [
        (TRITON_DRIVER, "CUDA mismatch", True),
        ("RuntimeError: No CUDA GPUs are available", "no GPU in the container", True),
        (VLLM_OOM, "out of GPU memory", True),
        (
            "ValueError: No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine.",
            "out of GPU memory",
            True,
        ),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current "
            "value: mem_fraction_static=0.5",
            "out of GPU memory",
            True,
        ),
        (
            "ValueError: The model's max seq len (131072) is larger than the maximum number of "
            "tokens that can be stored in KV cache (31232).",
            "context too long",
            True,
        ),
        (
            "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the "
            "ListObjectsV2 operation: Access Denied",
            "storage access denied",
            True,
        ),
        (
            "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
            "storage access denied",
            True,
        ),
        (
            "RuntimeError: Failed to fetch model. No model found in s3://models/x/.",
            "missing object",
            True,
        ),
        (
            "botocore.errorfactory.NoSuchBucket: An error occurred (NoSuchBucket) when calling the "
            "ListObjects operation: The specified bucket does not exist",
            "missing object",
            True,
        ),
        (
            'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "x"',
            "storage does not answer",
            False,
        ),
        (
            'Failed to pull image "nvcr.io/nvidia/tritonserver:99.99-py3": '
            "nvcr.io/nvidia/tritonserver:99.99-py3: not found",
            "image not found",
            True,
        ),
        (
            "pull access denied, repository does not exist or may require authorization",
            "image not found",
            True,
        ),
        (
            "failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized",
            "image refused",
            True,
        ),
        (
            "toomanyrequests: You have reached your pull rate limit.",
            "registry busy",
            False,
        ),
        ("write /mnt/models/1/model.onnx: no space left on device", "no disk on the node", True),
        (
            'pods "detector-r1-x" is forbidden: exceeded quota: gpus, requested: '
            "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: 4",
            "quota",
            True,
        ),
        (
            'admission webhook "validation.gatekeeper.sh" denied the request: no team label',
            "refused by a policy",
            True,
        ),
        (
            "Liveness probe failed: Get http://10.0.0.1:8080/v2/health/live: context deadline "
            "exceeded",
            "probe failure",
            True,
        ),
        (TRITON_FORMAT, "model cannot be loaded", True),
        (NO_BACKEND, "no such backend", True),
        (
            "The engine plan file is generated on an incompatible device, expecting compute 8.6 got "
            "compute 7.5, please rebuild.",
            "plan for another GPU",
            True,
        ),
        (
            "Error Code 1: Serialization (Serialization assertion stdVersionRead == "
            "serializationVersion failed.Version tag does not match. Note: Current Version: 213, "
            "Serialized Engine Version: 232)",
            "plan for another GPU",
            True,
        ),
        ("tritonserver: unrecognized option '--metrics-config'", "server option", True),
        (
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
            "CUDA mismatch",
            True,
        ),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please "
            "update your driver to a newer version, or use an earlier cuda container",
            "CUDA mismatch",
            True,
        ),
        (
            "ValueError: Free memory on device (3.1/22.05 GiB) on startup is less than desired GPU "
            "memory utilization (0.9, 19.84 GiB).",
            "GPU memory in use",
            False,
        ),
    ],
)
def test_each_message_has_its_reason_and_is_quoted(
    text: str, reason: str, is_terminal: bool
) -> None:
    cause = diagnosis.diagnose_text(text)

    assert cause is not None
    assert (cause.reason, cause.is_terminal) == (reason, is_terminal)
    assert text.splitlines()[-1][:60] in cause.message


def test_an_unknown_message_has_no_diagnosis() -> None:
    assert diagnosis.diagnose_text("I0720 02:58:12.903708 68 server.cc:592] started") is None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "no GPU"),
        (
            "0/3 nodes are available: 3 Insufficient nvidia.com/mig-1g.10gb.",
            "no GPU (nvidia.com/mig-1g.10gb)",
        ),
        ("0/3 nodes are available: 3 Insufficient cpu.", "no CPU"),
        (
            "0/4 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node "
            "affinity/selector, 2 Insufficient memory.",
            "no memory or CPU",
        ),
        (
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 Insufficient cpu, "
            "2 Insufficient memory.",
            "no GPU or CPU or memory",
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
            "no node of this type",
        ),
        (
            "incompatible requirements, key karpenter.sh/capacity-type, In [spot] not in In "
            "[on-demand]",
            "no node of this capacity type",
        ),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {x: y}.", "waiting for a node"),
    ],
)
def test_a_pod_without_a_node_waits(message: str, reason: str) -> None:
    cause = diagnosis.diagnose_scheduling(message)

    assert (cause.reason, cause.is_terminal) == (reason, False)
    assert message in cause.message


def test_a_reclaimed_node_is_no_failure_of_the_model() -> None:
    cause = diagnosis.diagnose_lost_pod(
        "Terminated", "Pod was terminated in response to imminent node shutdown."
    )

    assert (cause.reason, cause.is_terminal) == ("node taken", False)


@pytest.mark.parametrize("reason", ["Evicted", "TerminationByKubelet"])
@pytest.mark.parametrize(
    ("message", "expected", "is_terminal"),
    [
        (
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi.",
            "no disk on the node",
            True,
        ),
        (
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi.",
            "no disk on the node",
            True,
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.",
            "no memory on the node",
            False,
        ),
    ],
)
def test_a_pod_evicted_by_its_node_names_what_the_node_lacked(
    reason: str, message: str, expected: str, *, is_terminal: bool
) -> None:
    verdict = diagnosis.diagnose_lost_pod(reason, message)

    assert (verdict.reason, verdict.is_terminal) == (expected, is_terminal)
    assert message in verdict.message


def test_the_line_of_a_log_that_matches_a_case_is_quoted() -> None:
    log = f"starting\n{VLLM_OOM}\nEngine core initialization failed.\n"

    assert diagnosis.explaining_line(log) == VLLM_OOM
    assert diagnosis.explaining_line("one\ntwo\n") == "two"
    assert diagnosis.explaining_line("") == ""
