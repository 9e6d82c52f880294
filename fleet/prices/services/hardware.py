"""The known hardware of an instance type: from the catalogue, or from a node of that type."""

from __future__ import annotations

from fleet.gpus.selectors import prices
from fleet.kube.domain import quantities
from fleet.models import Node
from fleet.prices.domain.price_rows import HARDWARE, Hardware


class KnownHardware:
    """Each type is looked up once."""

    def __init__(self) -> None:
        self._by_type: dict[str, Hardware | None] = {}

    def find(self, instance_type: str) -> Hardware | None:
        if instance_type not in self._by_type:
            self._by_type[instance_type] = _catalogued(instance_type) or _observed(instance_type)
        return self._by_type[instance_type]


def _catalogued(instance_type: str) -> Hardware | None:
    price = prices.find_hardware(instance_type)
    return Hardware(**{name: getattr(price, name) for name in HARDWARE}) if price else None


def _observed(instance_type: str) -> Hardware | None:
    nodes = Node.objects.filter(instance_type=instance_type, gpu_count__gt=0)
    node = nodes.order_by("-last_seen_at").first()
    if node is None:
        return None
    cpu = str(node.allocatable.get("cpu", ""))
    memory = str(node.allocatable.get("memory", ""))
    return Hardware(
        gpu_name=(node.gpu_product or instance_type)[:30],
        gpu_count=node.gpu_count,
        gpu_memory_mib=node.gpu_memory_mib,
        is_mig_capable=node.labels.get("nvidia.com/mig.capable") == "true",
        vcpu=(quantities.millicores(cpu) or 0) // 1000,
        memory_gib=(quantities.whole_bytes(memory) or 0) // 2**30,
        allocatable_cpu=cpu[:20],
        allocatable_memory=memory[:20],
    )
