"""The pods of a team's load tests: their limits and their GPU."""

from __future__ import annotations

from typing import Annotated, Any, Final

from deployments.spec.domain.node_selection import INSTANCE_TYPE
from deployments.spec.domain.pod_settings import Cpu, Memory
from portal.core.definitions import Definition, setting

MAX_MINUTES: Final = 120
_EXAMPLE: Final = "nvidia.com/gpu, nvidia.com/gpu.shared or nvidia.com/mig-1g.10gb"


class PodChoice(Definition):
    """The pod of each load test."""

    instance_type: Annotated[
        str,
        setting(
            "Instance type",
            "Nodes of this type run the test. Leave empty for any node.",
            pattern=rf"({INSTANCE_TYPE})?",
            max_length=40,
            fix="Enter an instance type of the cluster, for example g5.xlarge, or leave it empty.",
        ),
    ] = ""
    gpu_resource: Annotated[
        str,
        setting(
            "GPU resource",
            "The test requests one. Leave empty to load models on the CPU.",
            pattern=r"(nvidia\.com/(gpu|gpu\.shared|mig-[0-9]+g\.[0-9]+gb(\.me)?))?",
            max_length=60,
            fix=f"Use {_EXAMPLE}, or leave it empty.",
        ),
    ] = ""
    cpu: Cpu = "2"
    memory: Memory = "8Gi"
    minutes: Annotated[
        int,
        setting(
            "Time limit",
            "Minutes for a node to start, the image, the download, loading and answering together.",
            unit="min",
            ge=5,
            le=MAX_MINUTES,
            fix=f"Use 5 to {MAX_MINUTES} minutes.",
        ),
    ] = 30

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)
