"""Forests of decision trees for Triton's FIL backend, whose names the keys are.

XGBoost writes a JSON or UBJSON object whose first keys are `learner` and `version`; LightGBM a text
that begins with `tree` and its version. A checkpoint of Treelite, which forests of cuML and of scikit-learn are
converted to, begins with its version as three 32-bit integers and the types of thresholds and leaves
(dmlc/treelite, src/serializer.cc); releases of one major version read each other's.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from deployments.registry.domain import object_keys, signatures
from deployments.registry.domain.forests import comparison
from deployments.registry.domain.forests import facts as forest_facts
from deployments.registry.domain.forests.facts import ForestFacts
from deployments.registry.domain.formats.format import (
    ArtifactReading,
    Context,
    Format,
    Inspection,
    single_file,
)
from deployments.registry.domain.not_servable import NotServable
from deployments.sizing.domain import trees

_XGBOOST_JSON: Final = re.compile(
    rb'\s*\{\s*"(learner"|version"\s*:\s*\[[\d,\s]*\]\s*,\s*"learner")\s*:'
)
# An object whose first key has its length as an integer of 1 to 8 bytes: UBJSON's i, U, I, l or L.
_XGBOOST_UBJ: Final = re.compile(rb"\{[iUIlL]\x00{0,7}\x07(learner|version)")
_SNAPSHOT: Final = re.compile(rb"\{[iUIlL]\x00{0,7}\x06Config")
# XGBoost before 3.1, src/learner.cc: LearnerModelParamLegacy, then two texts.
_BINARY: Final = b"binf"
_BASE64: Final = b"bs64\t"
_PARAMETER_BYTES: Final = 136
_LONGEST_NAME: Final = 64
_BOOSTERS: Final = (b"gbtree", b"dart", b"gblinear")
_TREELITE: Final = re.compile(rb"\x04\0\0\0[\0-\x63]\0\0\0[\0-\x63]\0\0\0[\x02\x03][\x01-\x03]")
_LARGEST_CHECKPOINT: Final = 512 * 2**20
_TASK: Final = "deployments.registry.domain.forests.reading:read"


def conclude_converted(facts: Mapping[str, Any], context: Context) -> Inspection:
    """Conclude a forest that was converted to a checkpoint of Treelite."""
    return _conclude(forest_facts.CHECKPOINT, facts, context)


def _conclude(key: str, facts: Mapping[str, Any], context: Context) -> Inspection:
    """Describe a forest. `facts` are those of deployments.registry.domain.forests.reading:read. A `checkpoint`
    among them is served instead of the file.
    """
    forest = forest_facts.from_json(facts["forest"])
    body = _unpack(facts["checkpoint"])
    served_as = forest_facts.CHECKPOINT if body else key
    batching = f"up to {context.max_batch_size}: trees score each row alone."
    stated: dict[str, Any] = {"batching": batching, "tree_count": forest.trees}
    if forest.class_names:
        stated[signatures.CLASS_NAMES] = list(forest.class_names)
    signature = forest_facts.signature_of(
        forest, served_as, max_batch_size=context.max_batch_size, facts=stated
    )
    estimate = trees.estimate_vram(
        nodes=forest.nodes,
        values_per_row=forest.features + forest.outputs,
        rows=context.max_batch_size,
    )
    details = {
        "Inputs and outputs": _describe(forest, facts),
        "Runtime": _describe_runtime(forest, facts),
        "Batching": batching,
        "GPU memory": f"about {estimate.total_mib:,} MiB: {forest.nodes:,} nodes of trees "
        f"{estimate.weights_mib:,}, rows {estimate.activations_mib:,}, runtime "
        f"{estimate.runtime_mib:,}.",
    }
    target = object_keys.model_file_key("", context.model, signature.backend.model_file)
    return Inspection(
        signature,
        estimate,
        details,
        layout={} if body else {target: context.main},
        generated={target: body} if body else {},
        warnings=frozenset({"Runtime"} if facts["warnings"] else ()),
        sample=comparison.from_json(facts["sample"]) if facts["sample"] else None,
    )


def _describe(forest: ForestFacts, facts: Mapping[str, Any]) -> str:
    scores = "1 score" if forest.outputs == 1 else f"{forest.outputs:,} scores"
    features = "1 feature" if forest.features == 1 else f"{forest.features:,} features"
    first = f"{features} in, {scores} out, {forest.trees:,} trees"
    if facts.get("estimator"):
        first = f"{facts['estimator']}, converted without running it: {first}"
    return "; ".join([first, *facts["notes"]])


def _describe_runtime(forest: ForestFacts, facts: Mapping[str, Any]) -> str:
    loaded = f"Treelite {forest.runtime} loads it and scores rows"
    if facts["compared"]:
        loaded += f", with the answers of {facts['compared']} for generated ones"
    return ". ".join([loaded, *(f"{text[:1].upper()}{text[1:]}" for text in facts["warnings"])])


def _unpack(checkpoint: str) -> bytes:
    if not checkpoint:
        return b""
    packed = base64.b64decode(checkpoint)
    body = zlib.decompressobj().decompress(packed, _LARGEST_CHECKPOINT + 1)
    if len(body) > _LARGEST_CHECKPOINT:
        raise NotServable(
            f"The converted model is larger than {_LARGEST_CHECKPOINT // 2**20} MiB. Train fewer or smaller trees."
        )
    return body


def _forest(
    key: str, name: str, matches: Callable[[bytes], bool], *, endings: tuple[str, ...] = ()
) -> Format:
    return Format(
        key=key,
        name=name,
        detect=single_file(lambda head, _: matches(head)),
        endings=endings,
        is_read_locally=True,
        reading=ArtifactReading(_TASK, partial(_conclude, key)),
    )


XGBOOST_JSON: Final = _forest(
    "xgboost_json",
    "XGBoost (JSON)",
    lambda head: _XGBOOST_JSON.match(head) is not None,
    endings=(".json",),
)
XGBOOST_UBJ: Final = _forest(
    "xgboost_ubj",
    "XGBoost (UBJSON)",
    lambda head: _XGBOOST_UBJ.match(head) is not None,
    endings=(".ubj",),
)
LIGHTGBM: Final = _forest(
    forest_facts.LIGHTGBM, "LightGBM", lambda head: head.startswith(b"tree\nversion=v")
)
TREELITE: Final = _forest(
    forest_facts.CHECKPOINT,
    "Treelite checkpoint",
    lambda head: _TREELITE.match(head) is not None,
    endings=(".tl",),
)
XGBOOST_BINARY: Final = Format(
    key="xgboost",
    name="an XGBoost model in the old binary format",
    detect=single_file(lambda head, _: _is_old_binary(head)),
    advice="Convert it with a release that still reads it (pip install 'xgboost<3.1'): "
    "xgboost.Booster(model_file='model.bin').save_model('model.json').",
)
XGBOOST_SNAPSHOT: Final = Format(
    key="xgboost_snapshot",
    name="a snapshot of XGBoost's memory (Booster.serialize)",
    detect=single_file(lambda head, _: _SNAPSHOT.match(head) is not None),
    advice="Save the model itself, with the release that wrote it: booster.save_model('model.json').",
)


def _is_old_binary(head: bytes) -> bool:
    """Whether 136 bytes of numbers, the objective and the booster follow each other, with or without a mark."""
    if head.startswith(_BASE64):
        return True
    start = head.removeprefix(_BINARY)
    objective, rest = _read_text(start[_PARAMETER_BYTES:])
    booster, _ = _read_text(rest)
    return head.startswith(_BINARY) or (objective != b"" and booster in _BOOSTERS)


def _read_text(content: bytes) -> tuple[bytes, bytes]:
    """Return a text after its length as a 64-bit number, and what follows. Empty for a longer one."""
    length = int.from_bytes(content[:8], "little")
    if not 0 < length <= _LONGEST_NAME or len(content) < 8 + length:
        return b"", b""
    return content[8 : 8 + length], content[8 + length :]
