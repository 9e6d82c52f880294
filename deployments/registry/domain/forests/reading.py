"""Tasks of the sandbox that read trees with Treelite, the library that the FIL backend reads them with."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import treelite

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.forests.facts import CHECKPOINT, ForestFacts
from deployments.registry.domain.not_servable import NotServable

_MAX_FEATURES: Final = 1_000_000
_MAX_OUTPUTS: Final = 10_000
_ROWS: Final = 3
# "stoi" is all that it says of a number that it cannot read.
_SHORTEST_REASON: Final = 8


def read(argument: dict[str, Any], _: Artifact) -> dict[str, Any]:
    """`path` and `format` to ForestFacts as JSON. Raises NotServable."""
    return facts_of(_load(argument["path"], argument["format"])).to_json()


def facts_of(model: Any) -> ForestFacts:
    """Of a model that Treelite loaded. Raises NotServable."""
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
    rows = np.zeros((_ROWS, model.num_feature), dtype=model.input_type)
    scores = treelite.gtil.predict(model, rows, nthread=1)
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
        if kind == "lightgbm":
            return treelite.frontend.load_lightgbm_model(path)
        choice = "json" if kind == "xgboost_json" else "ubjson"
        return treelite.frontend.load_xgboost_model(path, format_choice=choice)
    except (treelite.TreeliteError, ValueError) as error:
        raise NotServable(describe_refusal(str(error))) from error


def _checkpoint(path: str) -> Any:
    """Its nodes are taken as they are stored, so each tree is checked to be one."""
    model = treelite.Model.deserialize(path)
    for number in range(model.num_tree):
        _require_tree(model.get_tree_accessor(number))
    return model


def _require_tree(tree: Any) -> None:
    """A child that is its own ancestor, or outside the tree, would hold or crash a server."""
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
    """Treelite's first line, without the time and the place in its own source, where it says more than
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
