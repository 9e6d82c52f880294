"""The nodes of the embedded cluster: real GPUs through NVML, else a simulated fleet."""

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pynvml

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers import conditions
from slipway_localcluster.controllers.ownership import is_same_status
from slipway_localcluster.errors import Conflict, JsonObject
from slipway_localcluster.kinds import NODE

logger = logging.getLogger(__name__)

SIMULATED_LABEL = "slipway.dev/simulated"
# Karpenter starts no hardware of one's own.
_OWN_LABEL = "slipway.dev/capacity-type"
REAL_NODE = "local-gpu"
_GPU = "nvidia.com/gpu"
_REGION = "us-east-1"
_MAX_PODS = "110"
_STATUS_TRIES = 5


@dataclass(frozen=True, slots=True)
class Machine:
    """The size of a node; `memory` and `cpu` are allocatable Kubernetes quantities."""

    name: str
    product: str
    gpus: int
    gpu_memory_mib: int
    cpu: str
    memory: str
    capacity_cpu: str
    capacity_memory: str
    instance_type: str = ""
    zone: str = ""
    family: str = ""
    capacity_type: str = "on-demand"


def _a10g(name: str, zone: str, capacity_type: str = "on-demand") -> Machine:
    return Machine(
        name=name,
        product="NVIDIA-A10G",
        gpus=1,
        gpu_memory_mib=23028,
        cpu="3920m",
        memory="14162Mi",
        capacity_cpu="4",
        capacity_memory="16384Mi",
        instance_type="g5.xlarge",
        zone=zone,
        family="ampere",
        capacity_type=capacity_type,
    )


SIMULATED = (
    _a10g("local-a10g-1", f"{_REGION}a"),
    _a10g("local-a10g-2", f"{_REGION}b"),
    Machine(
        name="local-t4-1",
        product="Tesla-T4",
        gpus=4,
        gpu_memory_mib=15360,
        cpu="47810m",
        memory="178933Mi",
        capacity_cpu="48",
        capacity_memory="196608Mi",
        instance_type="g4dn.12xlarge",
        zone=f"{_REGION}a",
        family="turing",
    ),
)
# For the sample deployments of the demo. Their names come first, so they are the first to be taken of equal nodes.
# One can be reclaimed, and of the last one no price is known.
SAMPLES = (
    *(_a10g(f"demo-a10g-{n}", f"{_REGION}{'abc'[n % 3 - 1]}") for n in range(1, 8)),
    _a10g("demo-spot-1", f"{_REGION}a", "spot"),
    Machine(
        name="demo-lab-1",
        product="NVIDIA-RTX-A6000",
        gpus=2,
        gpu_memory_mib=49140,
        cpu="31850m",
        memory="120248Mi",
        capacity_cpu="32",
        capacity_memory="131072Mi",
        zone=f"{_REGION}a",
        family="ampere",
        capacity_type="own",
    ),
)


def names(real: Machine | None, *, has_samples: bool = False) -> frozenset[str]:
    """Return the nodes that `register` creates."""
    return frozenset(machine.name for machine in _machines(real, has_samples=has_samples))


def register(
    api: ClusterApi, real: Machine | None, kubelet_port: int = 0, *, has_samples: bool = False
) -> None:
    """Create missing nodes, report all as ready, delete real or simulated ones of an earlier start.
    0: no API server can ask the kubelet.
    """
    present = {str(node["metadata"]["name"]): node for node in api.list(NODE)}
    ours = {REAL_NODE, *(machine.name for machine in (*SIMULATED, *SAMPLES))}
    for name in (present.keys() & ours) - names(real, has_samples=has_samples):
        api.delete(NODE, None, name)
    for machine in _machines(real, has_samples=has_samples):
        desired = node_of(machine, is_simulated=real is None)
        desired["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": kubelet_port}}
        node = present.get(machine.name) or api.create(NODE, desired)
        _report_status(api, node, desired["status"])


def _report_status(api: ClusterApi, node: JsonObject, desired: JsonObject) -> None:
    """Controllers write to a new node at the same time; the next report comes with the heartbeat."""
    for _ in range(_STATUS_TRIES):
        try:
            _write_status(api, node, desired)
        except Conflict:
            node = api.find(NODE, None, node["metadata"]["name"]) or node
        else:
            return


def _write_status(api: ClusterApi, node: JsonObject, desired: JsonObject) -> None:
    """Other conditions stay: the node lifecycle controller and others write them."""
    before = node.get("status") or {}
    current = before.get("conditions") or ()
    others = [item for item in current if item["type"] != "Ready"]
    merged = [*others, *conditions.merge(current, desired["conditions"])]
    status = before | desired | {"conditions": merged}
    if not is_same_status(status, before):
        api.replace_status(NODE, node | {"status": status})


def _machines(real: Machine | None, *, has_samples: bool) -> tuple[Machine, ...]:
    if real is not None:
        return (real,)
    return (*SIMULATED, *SAMPLES) if has_samples else SIMULATED


def node_of(machine: Machine, *, is_simulated: bool) -> JsonObject:
    gpus = str(machine.gpus)
    amounts = {"pods": _MAX_PODS, "ephemeral-storage": "100Gi", _GPU: gpus}
    ready = conditions.condition(
        "Ready", conditions.TRUE, reason="KubeletReady", message="the local cluster runs"
    )
    return {
        "metadata": {"name": machine.name, "labels": _labels(machine, is_simulated=is_simulated)},
        "spec": {"taints": [{"key": _GPU, "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {
                "cpu": machine.capacity_cpu,
                "memory": machine.capacity_memory,
                **amounts,
            },
            "allocatable": {"cpu": machine.cpu, "memory": machine.memory, **amounts},
            "conditions": conditions.merge(None, [ready]),
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": machine.name},
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.0-local", "architecture": "amd64"},
        },
    }


def _labels(machine: Machine, *, is_simulated: bool) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": machine.product,
        "nvidia.com/gpu.count": str(machine.gpus),
        "nvidia.com/gpu.memory": str(machine.gpu_memory_mib),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "false",
    }
    if is_simulated:
        is_own = machine.capacity_type == "own"
        labels |= {
            SIMULATED_LABEL: "true",
            "node.kubernetes.io/instance-type": machine.instance_type,
            _OWN_LABEL if is_own else "karpenter.sh/capacity-type": machine.capacity_type,
            "topology.kubernetes.io/region": _REGION,
            "topology.kubernetes.io/zone": machine.zone,
            "nvidia.com/gpu.family": machine.family,
        }
    return labels


def detect_real() -> Machine | None:
    """Return the GPUs that NVML reports on this machine. None if there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handles = [
            pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
        ]
        return _describe(handles) if handles else None
    except pynvml.NVMLError as error:
        logger.warning("NVML answers, but not about GPUs: %s", error)
        return None
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _describe(handles: Sequence[object]) -> Machine:
    """A machine with different GPUs is labelled by its first one."""
    name = pynvml.nvmlDeviceGetName(handles[0])
    product = (name.decode() if isinstance(name, bytes) else str(name)).replace(" ", "-")
    memory = int(pynvml.nvmlDeviceGetMemoryInfo(handles[0]).total) // 2**20
    cores = os.cpu_count() or 1
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return Machine(
        name=REAL_NODE,
        product=product,
        gpus=len(handles),
        gpu_memory_mib=memory,
        cpu=str(cores),
        memory=f"{total}Mi",
        capacity_cpu=str(cores),
        capacity_memory=f"{total}Mi",
    )
