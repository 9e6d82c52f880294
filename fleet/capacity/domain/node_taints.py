"""Two kinds of taints of nodes: those that reserve a node for pods which tolerate them, and those that say what happens to
it now, which nobody is to tolerate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fleet.gpus.domain import neuron, shares, tolerations
from fleet.observation.domain.node_health import Taint
from fleet.observation.domain.node_notices import TAINT_KEYS

# Of Kubernetes itself, and of Karpenter until a node has joined.
_OF_STATE: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/unregistered",
    *TAINT_KEYS,
)
# As agents of networks and volumes name theirs: node.cilium.io/agent-not-ready.
_UNTIL_READY: Final = "not-ready"


def is_of_state(taint: Taint) -> bool:
    return taint.key.startswith(_OF_STATE) or taint.key.endswith(_UNTIL_READY)


def format_taints(taints: Iterable[Taint]) -> tuple[str, ...]:
    """Return the taints in kubectl notation, sorted, each once."""
    return tuple(sorted({str(taint) for taint in taints}))


def list_reserving_taints(
    taints: Sequence[Taint], *, gpu_product: str, capacity_type: str
) -> tuple[str, ...]:
    """Return the taints that a pod must tolerate to start there, beyond those that every pod requesting such a node
    tolerates. Taints of the node's state are left out.
    """
    resource = neuron.DEVICE if neuron.is_product(gpu_product) else shares.WHOLE
    away = tolerations.list_untolerated(
        taints, tolerations.list_pod_tolerations(resource, capacity_type)
    )
    return format_taints(taint for taint in away if not is_of_state(taint))
