"""The facts that are read from a file of trees, and how Triton's FIL backend serves it.

Facts of the backend: triton-inference-server/fil_backend, docs/model_config.md and src/shared_state.h.
Its one input and one output have fixed names and 32-bit floats. Release 25.09 renamed `output_class` to
`is_classifier`; each ignores the other's name, so both are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from deployments.registry.domain.signatures import ANY, Backend, Signature, Tensor

INPUT: Final = "input__0"
OUTPUT: Final = "output__0"
# Treelite's own format, which holds no code.
CHECKPOINT: Final = "treelite_checkpoint"
LIGHTGBM: Final = "lightgbm"
_FILES: Final = {
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    LIGHTGBM: "model.txt",
    CHECKPOINT: "checkpoint.tl",
}


@dataclass(frozen=True, slots=True)
class ForestFacts:
    """The facts of a forest. `outputs` is the number of scores of a row: the classes, or 1 for two classes and
    for a number. `runtime` is the version of Treelite that scored rows. `class_names` is empty where the
    file holds none.
    """

    features: int
    outputs: int
    trees: int
    nodes: int
    runtime: str
    class_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def from_json(data: Mapping[str, Any]) -> ForestFacts:
    return ForestFacts(**{**data, "class_names": tuple(data["class_names"])})


def signature_of(
    forest: ForestFacts, kind: str, *, max_batch_size: int, facts: Mapping[str, Any]
) -> Signature:
    return Signature(
        inputs=(Tensor(INPUT, "FP32", (ANY, forest.features)),),
        outputs=(Tensor(OUTPUT, "FP32", (ANY, forest.outputs)),),
        max_batch_size=max_batch_size,
        facts=facts,
        backend=_backend(forest, kind),
    )


def _backend(forest: ForestFacts, kind: str) -> Backend:
    """Return the backend of a forest. Several classes are answered with the probability of each. A model with
    one output is not named a classifier, because the backend would then answer two classes with 0 or 1, not
    with a probability.
    """
    has_classes = "true" if forest.outputs > 1 else "false"
    parameters = {
        "model_type": kind,
        "is_classifier": has_classes,
        "output_class": has_classes,
        "predict_proba": has_classes,
    }
    if forest.outputs > 1:
        # Read for every classifier, and without effect on probabilities.
        parameters["threshold"] = "0.5"
    return Backend(name="fil", model_file=_FILES[kind], parameters=parameters)
