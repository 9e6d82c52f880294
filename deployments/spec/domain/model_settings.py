"""Settings of a model in Triton: batching, instances and precision; and the models beside it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from deployments.spec.domain import field_rules, triton_rules, triton_values
from deployments.spec.domain.triton_settings import TritonSettings
from portal.core import definitions
from portal.core.definitions import Definition, Rejected, setting

Precision = Literal["original", "fp16", "bf16"]
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
# Further models beside a version's own, in one process.
MAX_ADDITIONAL_MODELS: Final = 8


class Batching(Definition):
    """Triton's dynamic batching."""

    is_dynamic: Annotated[
        bool, setting("Dynamic batching", "Waiting requests run as one batch.")
    ] = True
    max_queue_delay_us: Annotated[
        int,
        setting(
            "Queue delay",
            "Max wait to fill a batch.",
            unit="µs",
            ge=0,
            le=1_000_000,
            fix="Use 0 to 1000000 microseconds.",
        ),
    ] = 0
    preferred_batch_sizes: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_batch_sizes),
        setting(
            "Preferred batch sizes",
            "TensorRT plans only, for example 4, 8, 16.",
            fix="Use at most eight sizes from 1 to 4096.",
        ),
    ] = ()

    preserve_ordering: Annotated[
        bool, setting("Keep order", "Responses leave in the order of the requests.")
    ] = False
    max_batch_size: Annotated[
        int,
        setting(
            "Max batch size",
            "Leave empty to use the version's limit. Larger requests are refused.",
            is_empty_zero=True,
            ge=0,
            le=4096,
            fix="Use 0 (the version's limit) to 4096.",
        ),
    ] = 0

    @model_validator(mode="after")
    def _check_dynamic(self) -> Self:
        needs_dynamic = (
            self.max_queue_delay_us or self.preferred_batch_sizes or self.preserve_ordering
        )
        if not self.is_dynamic and needs_dynamic:
            fix = "Queue delay, preferred sizes and keeping the order need dynamic batching. Turn it on."
            raise Rejected(fix, {"is_dynamic": fix})
        return self


InstancesPerGpu = Annotated[
    int,
    setting(
        "Instances per GPU",
        "Copies of the model. Each needs its own memory.",
        ge=1,
        le=16,
        fix="Use 1 to 16 instances. Each loads its own copy of the model into GPU memory.",
        group="batching",
    ),
]
WarmUp = Annotated[
    bool,
    setting(
        "Warm up", "Runs once before traffic, so the first request is not slow.", group="batching"
    ),
]
ModelPrecision = Annotated[
    Precision,
    setting(
        "Precision",
        "Type of the weights on the GPU.",
        choices={"original": "as in the file"},
        group="batching",
    ),
]


Triton = Annotated[
    TritonSettings,
    setting("Triton", "Further settings of config.pbtxt.", group="triton"),
]


class ModelSettings(Definition):
    """The settings of a revision for one model's config.pbtxt."""

    batching: Annotated[Batching, setting("Batching", "How requests become batches.")] = Batching()
    instances_per_gpu: InstancesPerGpu = 1
    warm_up: WarmUp = False
    precision: ModelPrecision = "original"
    triton: Triton = TritonSettings()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        definitions.check(triton_rules.rules_of(self))
        return self


class AdditionalModel(ModelSettings):
    """A version of another model of the team in the same Triton, with its own settings."""

    model: Annotated[
        str,
        AfterValidator(field_rules.check_model_name),
        setting("Model", "A model of the team.", max_length=40),
    ]
    version: Annotated[int, setting("Version", "One of its versions.", ge=1, le=2**31 - 1)]

    @property
    def label(self) -> str:
        return f"{self.model}:{self.version}"
