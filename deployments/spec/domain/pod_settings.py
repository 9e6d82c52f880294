"""Pods: resources and environment, nodes, storage, network, and containers beside the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.spec.domain import field_rules
from deployments.spec.domain.accelerators.claim_settings import (
    ClaimMemory,
    ClaimProduct,
    ClaimTolerations,
)
from deployments.spec.domain.applicability import needs, used_by
from deployments.spec.domain.engines import ENGINES, LLM_SERVICE, OPENAI_ENGINES
from deployments.spec.domain.field_rules import MAX_CORES, MAX_GIB
from deployments.spec.domain.node_selection import (
    INSTANCE_TYPE,
    MOST_OTHER_TYPES,
    normalized_labels,
    normalized_taints,
    normalized_types,
)
from portal.core.definitions import Definition, setting

# A preset of KServe sets the image of the others.
_NAMED_IMAGES: Final = tuple(engine for engine in ENGINES if engine != LLM_SERVICE)
if TYPE_CHECKING:
    Access = str
else:
    # As a Literal it is refused with the names that there are, and REST and forms list them.
    Access = Literal[catalogue.names()]
ISSUER_NAME: Final = r"([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?)?"
_OBJECT_NAME: Final = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?"

InstanceType = Annotated[
    str,
    setting(
        "Instance type",
        "Nodes of this type run the pods.",
        pattern=INSTANCE_TYPE,
        max_length=40,
        fix="Enter an instance type of the cluster, for example g5.xlarge.",
    ),
]
Cpu = Annotated[
    str,
    AfterValidator(field_rules.check_cpu),
    setting(
        "CPU",
        "Cores of each pod, for example 2 or 1500m.",
        max_length=10,
        group="advanced",
        fix=f"Use whole cores or millicores, up to {MAX_CORES} cores: 2 or 1500m.",
    ),
]
Memory = Annotated[
    str,
    AfterValidator(field_rules.check_memory),
    setting(
        "Memory",
        "Memory of each pod, for example 8Gi or 512Mi.",
        max_length=10,
        group="advanced",
        fix=f"Use Mi or Gi, up to {MAX_GIB}Gi: 8Gi or 512Mi.",
    ),
]
TerminationGrace = Annotated[
    int,
    AfterValidator(field_rules.check_termination_grace),
    setting(
        "Termination grace",
        "How long a pod that is replaced or scaled in may finish its requests. Default: 10 minutes for "
        "language models, 35 seconds for others.",
        unit="s",
        group="advanced",
        is_derived=True,
        is_empty_zero=True,
        fix="Use 20 to 3600 seconds, or 0 for the engine's default.",
    ),
]
EnvironmentVariables = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(field_rules.sorted_pairs),
    PlainSerializer(dict, return_type=dict[str, str]),
    setting(
        "Environment variables",
        "Your own names start with APP_. Tuning variables such as OMP_NUM_THREADS are also "
        "allowed. No secrets.",
        fix='must map names to values, for example {"NAME": "value"}',
        is_mapping=True,
    ),
]


class Placement(Definition):
    """The nodes that take the pods."""

    capacity: Annotated[
        Literal["on-demand", "spot", "any"],
        setting(
            "Nodes",
            "Spot is cheaper. Its nodes can be reclaimed with two minutes' notice.",
            choices={"spot": "spot (can be reclaimed)", "any": "either"},
        ),
    ] = "on-demand"
    other_instance_types: Annotated[
        str,
        AfterValidator(normalized_types),
        setting(
            "Other instance types",
            "Fallbacks, in order of preference, for example g6.xlarge, g5.2xlarge. "
            "Budget and approvals count the most expensive. Comma-separated.",
            max_length=250,
            fix=f"Write them as names of instance types, each once, up to {MOST_OTHER_TYPES}.",
        ),
    ] = ""
    priority_class: Annotated[
        str,
        setting(
            "Priority class",
            "Leave empty for the cluster's default.",
            pattern=r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?",
            max_length=63,
            fix="Enter a PriorityClass of the cluster, or leave it empty.",
        ),
    ] = ""
    node_labels: Annotated[
        str,
        AfterValidator(normalized_labels),
        setting(
            "Node labels",
            "Only nodes with all of them, for example topology.kubernetes.io/zone=us-east-1a. "
            "Comma-separated.",
            max_length=1000,
            fix="Write them as name=value, up to 10. Instance type and capacity have settings of their own.",
        ),
    ] = ""
    tolerations: Annotated[
        str,
        AfterValidator(normalized_taints),
        setting(
            "Tolerated taints",
            "Taints of reserved nodes, for example reserved=batch:NoSchedule. Comma-separated. The platform "
            "lists what teams may tolerate.",
            max_length=1000,
            fix="Write them as key=value:NoSchedule or key:NoSchedule, up to 10.",
        ),
    ] = ""
    queue: Annotated[
        str,
        setting(
            "Kueue queue",
            "A LocalQueue in the team's namespace: pods start once its quota admits them. Leave empty for none.",
            pattern=_OBJECT_NAME,
            max_length=63,
            fix="Enter a LocalQueue of the team's namespace, or leave it empty.",
        ),
        needs({True: "kueue"}),  # any name
    ] = ""
    device_claims: Annotated[
        bool,
        setting(
            "Request GPUs by ResourceClaim",
            "Where NVIDIA's DRA driver allocates the GPUs of nodes instead of the device plugin.",
        ),
        needs({True: "device-claims"}),
    ] = False
    claim_product: ClaimProduct = ""
    claim_memory_gib: ClaimMemory = 0
    claim_tolerations: ClaimTolerations = ""
    spread_zones: Annotated[
        bool, setting("Spread across zones", "Best effort. Never blocks scheduling.")
    ] = True
    do_not_disrupt: Annotated[
        bool,
        setting(
            "Do not disrupt",
            "Karpenter does not move its pods to save nodes or to update them, for a model that takes long to "
            "start. Their nodes stay, also when they are nearly empty.",
        ),
        needs({True: "karpenter"}),
    ] = False
    pre_pull: Annotated[
        bool,
        setting(
            "Pre-pull images", "A DaemonSet keeps the images on all nodes of the instance type."
        ),
        used_by(_NAMED_IMAGES, "KServe's preset names the image. Turn it off."),
        needs({True: "daemon-sets"}),
    ] = False


class Storage(Definition):
    """The storage of pods: how they get the model, and their shared memory."""

    model_cache: Annotated[
        Literal["none", "cluster", "volume"],
        setting(
            "Model cache",
            "New pods do not download the model again.",
            choices={"cluster": "by KServe on the nodes", "volume": "on a shared volume"},
        ),
        needs({"cluster": "model-cache"}),
    ] = "none"
    volume_claim: Annotated[
        str,
        setting(
            "Volume claim",
            "A ReadWriteMany claim of the namespace, for example on FSx for Lustre or EFS.",
            pattern=_OBJECT_NAME,
            max_length=253,
            fix="Enter a PersistentVolumeClaim of the team's namespace, or leave it empty.",
        ),
    ] = ""
    shm_size: Annotated[
        str,
        AfterValidator(field_rules.check_optional_memory),
        setting(
            "Shared memory",
            "Size of /dev/shm, counted as pod memory. For example 1Gi. Leave empty for no limit.",
            max_length=10,
            fix="Use Mi or Gi: 1Gi or 512Mi.",
        ),
    ] = "1Gi"
    service_account: Annotated[
        str,
        setting(
            "Service account",
            "Leave empty for the default, with the cluster's IAM role (IRSA).",
            pattern=_OBJECT_NAME,
            max_length=253,
            fix="Enter a ServiceAccount of the team's namespace, or leave it empty.",
        ),
    ] = ""
    secret: Annotated[
        str,
        setting(
            "Storage credentials",
            "A Secret with S3 keys. Leave empty for the cluster's default.",
            pattern=_OBJECT_NAME,
            max_length=253,
            fix="Enter a Secret of the team's namespace, or leave it empty.",
        ),
    ] = ""


class Network(Definition):
    """The network access to the model and its pods."""

    access: Annotated[
        Access,
        setting(
            "Callers",
            "Who can call this deployment. Create keys in the Callers tab. The approver sees a public "
            "address.",
            # In a canary: of the stable revision.
            is_derived=True,
            choices={kind.name: kind.label for kind in catalogue.list_for_forms()},
            group="callers",
        ),
        needs({kind.name: kind.option for kind in catalogue.KINDS if kind.option}),
    ] = catalogue.DEFAULT.name
    token_issuer: Annotated[
        str,
        setting(
            "Token issuer",
            "Only for callers with a token: the registered identity provider of the tokens. Add each "
            "caller in the Callers tab.",
            pattern=ISSUER_NAME,
            max_length=40,
            group="callers",
            fix="Enter the name of a token issuer, or leave it empty.",
        ),
    ] = ""
    team_address: Annotated[
        bool,
        setting(
            "Team address",
            "Also answers at /team/v1, the one address of the team for clients of OpenAI's API. The model "
            "that a request names chooses this deployment.",
        ),
        used_by(OPENAI_ENGINES, "{engine} does not speak OpenAI's API. Turn it off."),
        needs({True: "model-routing"}),
    ] = False
    strict_mtls: Annotated[
        bool,
        setting("Strict mTLS", "Rejects calls from outside the mesh."),
        needs({True: "strict-mtls"}),
    ] = False
    service_monitor: Annotated[
        bool,
        setting("ServiceMonitor", "Prometheus scrapes Triton's metrics."),
        needs({True: "service-monitor"}),
    ] = False

    @property
    def access_kind(self) -> AccessKind:
        return catalogue.named(self.access)
