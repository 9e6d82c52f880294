"""The settings of a batch job's pods."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Self

from pydantic import model_validator

from deployments.spec.domain.node_selection import INSTANCE_TYPE
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.catalogue import Placement
from deployments.spec.domain.placement.settings.capacity_type import CAPACITY_CHOICES, Capacity
from deployments.spec.domain.placement.settings.gpus import (
    ClaimMemory,
    ClaimProduct,
    ClaimTolerations,
    DeviceClaims,
)
from deployments.spec.domain.pod_settings import Cpu, Memory
from portal.core import definitions
from portal.core.definitions import Definition, setting

MAX_WORKERS: Final = 64
# Of a job over files, and of one that drains a queue.
MAX_FILE_HOURS: Final = 72
MAX_HOURS: Final = 720
_OBJECT_NAME: Final = r"([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?)?"
_EXAMPLE: Final = "nvidia.com/gpu, nvidia.com/gpu.shared or nvidia.com/mig-1g.10gb"


class BatchSettings(Definition):
    """The pods of a batch job. Each has one GPU resource, a server and a worker beside it."""

    instance_type: Annotated[
        str,
        setting(
            "Instance type",
            "Nodes of this type run the job.",
            pattern=INSTANCE_TYPE,
            max_length=40,
            fix="Enter an instance type of the cluster, for example g5.xlarge.",
        ),
    ]
    gpu_resource: Annotated[
        str,
        setting(
            "GPU resource",
            "Each worker requests one.",
            pattern=r"nvidia\.com/(gpu|gpu\.shared|mig-[0-9]+g\.[0-9]+gb(\.me)?)",
            max_length=60,
            fix=f"Use {_EXAMPLE}.",
        ),
    ] = "nvidia.com/gpu"
    capacity: Annotated[
        Capacity,
        setting(
            "Nodes",
            "Spot is cheaper. A reclaimed worker continues at its last finished chunk.",
            choices=CAPACITY_CHOICES,
        ),
    ] = "spot"
    workers: Annotated[
        int,
        setting(
            "Workers",
            "Pods that score chunks in parallel.",
            ge=1,
            le=MAX_WORKERS,
            fix=f"Use 1 to {MAX_WORKERS} workers.",
        ),
    ] = 1
    requests: Annotated[
        int,
        setting(
            "Requests in flight",
            "Rows that each worker sends at once. Triton batches them.",
            ge=1,
            le=64,
            fix="Use 1 to 64 requests.",
        ),
    ] = 16
    hours: Annotated[
        int,
        setting(
            "Deadline",
            "The job ends then. You can resume it.",
            unit="h",
            ge=1,
            le=MAX_HOURS,
            fix=f"Use 1 to {MAX_HOURS} hours.",
        ),
    ] = 6
    error_limit: Annotated[
        int,
        setting(
            "Error limit",
            "Rows without an answer, or dead letters since the start, that the job tolerates.",
            ge=0,
            le=10**9,
            fix="Use 0 to 1000000000 rows.",
        ),
    ] = 100
    cpu: Cpu = "2"
    memory: Memory = "8Gi"
    device_claims: DeviceClaims = False
    claim_product: ClaimProduct = ""
    claim_memory_gib: ClaimMemory = 0
    claim_tolerations: ClaimTolerations = ""
    queue: Annotated[
        str,
        setting(
            "Kueue queue",
            "A LocalQueue in the team's namespace: workers start once its quota admits them. Leave empty for none.",
            pattern=_OBJECT_NAME,
            max_length=63,
            fix="Enter a LocalQueue of the team's namespace, or leave it empty.",
        ),
    ] = ""
    consumer_group: Annotated[
        str,
        setting(
            "Consumer group",
            "Group of the Redis stream or Kafka topic. Created if missing. Leave empty to use slipway.",
            pattern=r"[-A-Za-z0-9._]{0,200}",
            max_length=200,
            fix="Use letters, digits, dots, dashes and underscores.",
        ),
    ] = ""
    dead_letters: Annotated[
        str,
        setting(
            "Dead letters",
            "Get messages without an answer: a stream (empty: STREAM:dead); a queue of SQS or a topic of Kafka that exists "
            "(empty: NAME-dead).",
            pattern=r"[A-Za-z0-9_.:{}-]{0,200}",
            max_length=200,
            fix="Use the name of a stream, queue or topic.",
        ),
    ] = ""
    tries: Annotated[
        int,
        setting(
            "Max attempts",
            "Attempts to process a message before it becomes a dead letter.",
            ge=2,
            le=20,
            fix="Use 2 to 20 attempts.",
        ),
    ] = 3
    idle_seconds: Annotated[
        int,
        setting(
            "Stop idle workers after",
            "Time without a message after which a worker stops.",
            unit="s",
            ge=5,
            le=3600,
            fix="Use 5 to 3600 seconds.",
        ),
    ] = 60
    messages_per_worker: Annotated[
        int,
        setting(
            "Messages per worker",
            "Number of waiting messages for which one more worker starts.",
            ge=1,
            le=1_000_000,
            fix="Use 1 to 1000000 messages.",
        ),
    ] = 1000
    secret: Annotated[
        str,
        setting(
            "Secret",
            "In the team's namespace. Redis: key password. SQS: keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Kafka: "
            "keys sasl, username, password and tls. Leave empty for no password, or to use the role of the team's models.",
            pattern=_OBJECT_NAME,
            max_length=63,
            fix="Use the name of a Secret, for example queue-auth.",
        ),
    ] = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        definitions.check(catalogue.pod_rules_of(self.placement, self.gpu_resource))
        return self

    @property
    def placement(self) -> Placement:
        """The nodes that take the workers, by the settings that a placement of deployments has too."""
        shared: dict[str, Any] = {name: getattr(self, name) for name in PLACEMENT_FIELDS}
        # Each worker starts where a node is free: none waits for another zone.
        return Placement(**{**shared, "spread_zones": False})

    @property
    def time_limit(self) -> timedelta:
        return timedelta(hours=self.hours)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)


PLACEMENT_FIELDS: Final = tuple(
    name for name in Placement.model_fields if name in BatchSettings.model_fields
)
