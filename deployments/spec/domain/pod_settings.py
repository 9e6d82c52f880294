"""Pods: resources and environment, storage, network, and containers beside the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.spec.domain import field_rules
from deployments.spec.domain.applicability import limit_to_engines, needs
from deployments.spec.domain.engines import OPENAI_ENGINES
from deployments.spec.domain.field_rules import MAX_CORES, MAX_GIB
from portal.core.definitions import Definition, setting

if TYPE_CHECKING:
    Access = str
else:
    # As a Literal it is refused with the names that there are, and REST and forms list them.
    Access = Literal[catalogue.names()]
ISSUER_NAME: Final = r"([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?)?"
_OBJECT_NAME: Final = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?"

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
        limit_to_engines(OPENAI_ENGINES, "{engine} does not speak OpenAI's API. Turn it off."),
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
        return catalogue.get_kind(self.access)
