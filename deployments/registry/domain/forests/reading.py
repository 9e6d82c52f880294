"""Tasks of the sandbox that read trees with Treelite, the library that the FIL backend reads them with."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import treelite

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.forests import (
    comparison,
    lightgbm_splits,
    own_library,
    sample_rows,
)
from deployments.registry.domain.forests.comparison import Sample
from deployments.registry.domain.forests.facts import CHECKPOINT, LIGHTGBM, ForestFacts
from deployments.registry.domain.forests.own_library import OwnLibrary
from deployments.registry.domain.not_servable import NotServable, printable

_MAX_FEATURES: Final = 1_000_000
_MAX_OUTPUTS: Final = 10_000
_ROWS: Final = 3
# "stoi" is all that it says of a number that it cannot read.
_SHORTEST_REASON: Final = 8
_LIGHTGBM_NOTES: Final = (
    "rows are 32-bit numbers: a value that is as near to a threshold as its eighth digit may be rounded across it, and "
    "gets another score than a 64-bit row in LightGBM",
)


def read(argument: dict[str, Any], _: Artifact) -> dict[str, Any]:
    """Read a forest in the sandbox: `path`, `format` and `logged_as` (the class that a registry names, or
    empty) to what conclude takes. Raises NotServable.
    """
    path, kind = argument["path"], argument["format"]
    if kind == LIGHTGBM:
        lightgbm_splits.check(path)
    model = _load(path, kind)
    facts = facts_of(model)
    if kind == CHECKPOINT:
        return make_result(model, facts)
    library = _open_library(path, kind, argument.get("logged_as", ""))
    if isinstance(library, str):
        return make_result(model, facts, notes=[library])
    served = model
    if library.cut is not None:
        served = treelite.frontend.from_xgboost(library.cut)
        facts = facts_of(served)
    facts = replace(facts, class_names=library.class_names)
    sample = require_same_answers(served, library.predict, name=library.name)
    result = make_result(served, facts, sample=sample, compared=library.name)
    result["checkpoint"] = pack_checkpoint(served) if library.cut is not None else ""
    rounds = library.rounds
    result["warnings" if rounds.is_doubtful else "notes"] += [rounds.note] if rounds.note else []
    if kind == LIGHTGBM:
        result["notes"] += [
            *_LIGHTGBM_NOTES,
            *filter(None, [lightgbm_splits.describe_categories(path)]),
        ]
        result["warnings"] += filter(None, [lightgbm_splits.describe_rounding(path)])
    return result


def require_same_answers(
    model: Any, predict: Callable[[Any], Any], *, name: str, has_missing: bool = True
) -> Sample | None:
    """Compare generated rows: the scores of `model`, and those of the library `name`. Return rows for a
    server. Raises NotServable for a difference.
    """
    rows = sample_rows.make_rows(model, has_missing=has_missing)
    served, expected = _predict(model, rows), predict(rows)
    tolerance = comparison.choose_tolerance(model.num_tree)
    difference = comparison.describe_difference(
        served, expected, rows=rows, tolerance=tolerance, library=name
    )
    if difference:
        raise NotServable(
            f"{difference}. Slipway serves no model whose answers differ. Convert the model to ONNX "
            "(onnxmltools), or train it without the setting that differs."
        )
    return comparison.keep_sample(rows, expected, tolerance=tolerance, library=name)


def pack_checkpoint(model: Any) -> str:
    """Compress the model as a checkpoint of Treelite, in base64."""
    return base64.b64encode(zlib.compress(model.serialize_bytes())).decode()


def make_result(
    model: Any,
    facts: ForestFacts,
    *,
    sample: Sample | None = None,
    compared: str = "",
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Collect what conclude takes. Without a library to compare with, Treelite's own answers are the server's
    to give.
    """
    if not compared:
        rows = sample_rows.make_rows(model)
        tolerance = comparison.choose_tolerance(model.num_tree)
        answers = _predict(model, rows)
        name = f"Treelite {treelite.__version__}"
        sample = comparison.keep_sample(rows, answers, tolerance=tolerance, library=name)
    return {
        "forest": facts.to_json(),
        "sample": sample.to_json() if sample else None,
        "compared": compared,
        "notes": list(notes),
        "warnings": [],
        "checkpoint": "",
    }


def _open_library(path: str, kind: str, logged_as: str) -> OwnLibrary | str:
    """Return the library that trained the model, or why there is none here. Raises NotServable."""
    if kind != LIGHTGBM:
        return own_library.open_xgboost(path, saved_by=logged_as)
    try:
        return own_library.open_lightgbm(path)
    except OSError as error:
        return (
            f"not compared with LightGBM, which does not load here ({printable(str(error))[:100]})"
        )


def _predict(model: Any, rows: Any) -> Any:
    scores = treelite.gtil.predict(model, rows.astype(model.input_type), nthread=1)
    return np.asarray(scores).reshape(len(rows), -1).astype(np.float32)


def facts_of(model: Any) -> ForestFacts:
    """Read the facts of a model that Treelite loaded. Raises NotServable."""
    header = model.get_header_accessor()
    targets = int(header.get_field("num_target")[0])
    classes = [int(count) for count in header.get_field("num_class")]
    if targets != 1:
        raise NotServable(
            f"The model predicts {targets} targets for each row; Triton's FIL backend serves one. "
            "Train one model for each target."
        )
    outputs = max(classes)
    if not 0 < model.num_feature <= _MAX_FEATURES or not 0 < outputs <= _MAX_OUTPUTS:
        raise NotServable(
            f"The file states {model.num_feature:,} features and {outputs:,} outputs. Use up to "
            f"{_MAX_FEATURES:,} and {_MAX_OUTPUTS:,}."
        )
    if model.num_tree == 0:
        raise NotServable("The file holds no trees. Train the model, then save it.")
    trees = [model.get_tree_accessor(number) for number in range(model.num_tree)]
    for tree in trees:
        # Treelite does not check all of them, and a server would read behind the row.
        _require_known_features(tree, model.num_feature)
    _score(model)
    return ForestFacts(
        features=model.num_feature,
        outputs=outputs,
        trees=model.num_tree,
        nodes=sum(int(tree.get_field("num_nodes")[0]) for tree in trees),
        runtime=treelite.__version__,
    )


def _score(model: Any) -> None:
    """Score rows of zeros. Raises NotServable where a score is not a number."""
    scores = _predict(model, np.zeros((_ROWS, model.num_feature), np.float32))
    if not np.isfinite(scores).all():
        raise NotServable(
            "A row of zeros gets a score that is not a number. Train the model again, and save it "
            "with save_model."
        )


def _require_known_features(tree: Any, features: int) -> None:
    used = tree.get_field("split_index")
    if len(used) and int(used.max()) >= features:
        raise NotServable(
            f"A tree splits by feature {int(used.max()):,}, and the model has {features:,}. Train it "
            "again, and save it with save_model."
        )


def _load(path: str, kind: str) -> Any:
    try:
        if kind == CHECKPOINT:
            return _checkpoint(path)
        if kind == LIGHTGBM:
            return treelite.frontend.load_lightgbm_model(path)
        choice = "json" if kind == "xgboost_json" else "ubjson"
        return treelite.frontend.load_xgboost_model(path, format_choice=choice)
    except (treelite.TreeliteError, ValueError) as error:
        raise NotServable(describe_refusal(str(error))) from error


def _checkpoint(path: str) -> Any:
    """Load a checkpoint of Treelite. Its nodes are taken as they are stored, so each tree is checked to be one."""
    model = treelite.Model.deserialize(path)
    for number in range(model.num_tree):
        _require_tree(model.get_tree_accessor(number))
    return model


def _require_tree(tree: Any) -> None:
    """Require that the nodes are a tree. A child that is its own ancestor, or outside the tree, would hold or
    crash a server. Raises NotServable.
    """
    left, right = tree.get_field("cleft"), tree.get_field("cright")
    count = int(tree.get_field("num_nodes")[0])
    parents = np.flatnonzero(left >= 0)
    is_whole = len(left) == len(right) == count > 0
    if is_whole:
        children = np.concatenate([left[parents], right[parents]])
        # Each node but the root is the child of exactly one node before it.
        is_before = np.minimum(left[parents], right[parents]) > parents
        is_whole = bool(np.array_equal(np.sort(children), np.arange(1, count)) and is_before.all())
    if not is_whole:
        raise NotServable(
            "A tree's nodes are not connected as a tree. The file is damaged; save the model again."
        )


def describe_refusal(message: str) -> str:
    """Return Treelite's first line, without the time and the place in its own source, where it says more than
    that parsing ended.
    """
    first = message.partition("\n")[0].rpartition(": ")[2].strip().rstrip(".")[:200]
    if len(first) < _SHORTEST_REASON or "parsing" in first:
        first = "the file is damaged, or holds no trees (gblinear)"
    return f"Treelite cannot read it: {first}. {_fix(first)}"


def _fix(reason: str) -> str:
    if "categorical encoder" in reason:
        return (
            "Train on codes instead of categories: df[column].cat.codes, with feature_types=['q', 'c'] and "
            "enable_categorical=True of the DMatrix; requests then send codes."
        )
    if "linear" in reason:
        return "Train trees: without linear_tree, or with a booster other than gblinear."
    return "Save a model of trees again with save_model."
