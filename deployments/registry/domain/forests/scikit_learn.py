"""Convert a forest that scikit-learn saved into a Treelite checkpoint, for the sandbox.

The pickle is read symbolically: nothing of it is executed and scikit-learn is not imported. What is written
are numbers from its arrays, in a format that holds no code.

scikit-learn compares 32-bit rows with 64-bit thresholds. The largest 32-bit number up to a threshold decides
every such comparison in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import treelite
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.forests import class_names
from deployments.registry.domain.forests import reading as forest_reading
from deployments.registry.domain.not_servable import NotServable, printable
from deployments.registry.domain.pickles import opening
from deployments.registry.domain.pickles.symbolic import Made

_ENSEMBLE: Final = "sklearn.ensemble._forest."
_TREE: Final = "sklearn.tree._classes."
_CLASSIFIERS: Final = frozenset(
    {
        f"{_ENSEMBLE}RandomForestClassifier",
        f"{_ENSEMBLE}ExtraTreesClassifier",
        f"{_TREE}DecisionTreeClassifier",
        f"{_TREE}ExtraTreeClassifier",
    }
)
_REGRESSORS: Final = frozenset(
    {
        f"{_ENSEMBLE}RandomForestRegressor",
        f"{_ENSEMBLE}ExtraTreesRegressor",
        f"{_TREE}DecisionTreeRegressor",
        f"{_TREE}ExtraTreeRegressor",
    }
)
_FIX: Final = (
    "Export the model to ONNX with skl2onnx, or save a RandomForest, ExtraTrees or DecisionTree of scikit-learn "
    "alone with joblib.dump."
)
# By the package of what the pickle holds.
_OWN_FILES: Final = {
    "xgboost": "Save it as XGBoost's own file: model.save_model('model.json').",
    "lightgbm": "Save it as LightGBM's own file: model.booster_.save_model('model.txt'), or save_model of a Booster.",
    "catboost": "Export it to ONNX: model.save_model('model.onnx', format='onnx').",
    "torch": "Export the model to ONNX: torch.onnx.export(model, example, 'model.onnx').",
}
_LEAF: Final = -1


@dataclass(frozen=True, slots=True)
class _Tree:
    """A tree of scikit-learn. `values` has a row for each node: the share of each class, or one number."""

    left: Any
    right: Any
    feature: Any
    threshold: Any
    missing_go_left: Any
    values: Any


def read(argument: dict[str, Any], _: Artifact) -> dict[str, Any]:
    """Read a pickle in the sandbox: its `path` to ForestFacts as JSON, with the checkpoint (compressed, in
    base64) and the name of the estimator. Raises NotServable.
    """
    reading = opening.read_pickle(argument["path"])
    forest = reading.value
    if reading.problem:
        raise NotServable(f"The file cannot be converted: {reading.problem}. {_FIX}")
    name = forest.name if isinstance(forest, Made) else ""
    if not isinstance(forest, Made) or name not in _CLASSIFIERS | _REGRESSORS:
        kind = printable(name or type(forest).__name__)[:100]
        fix = _OWN_FILES.get(name.partition(".")[0], _FIX)
        raise NotServable(f"The file holds {kind}, which no engine serves. {fix}")
    try:
        model = _build(forest, is_classifier=name in _CLASSIFIERS)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise NotServable(
            f"The trees in the file are damaged: {printable(str(error))[:100]}. {_FIX}"
        ) from error
    except treelite.TreeliteError as error:
        raise NotServable(f"Treelite refuses the trees of the file. {_FIX}") from error
    library = printable(str(forest.state.get("_sklearn_version", "of an unknown version")))[:40]
    facts = forest_reading.facts_of(model)
    names = class_names.read_names(forest.state.get("classes_"), outputs=facts.outputs)
    result = forest_reading.make_result(model, replace(facts, class_names=names))
    return {
        **result,
        "checkpoint": forest_reading.pack_checkpoint(model),
        "estimator": f"{name.rpartition('.')[2]} of scikit-learn {library}",
    }


def _build(forest: Made, *, is_classifier: bool) -> Any:
    state = forest.state
    estimators = state.get("estimators_", [forest])
    features = int(state["n_features_in_"])
    if int(state["n_outputs_"]) != 1:
        raise ValueError(f"it predicts {int(state['n_outputs_'])} targets for each row")
    classes = int(np.asarray(state["n_classes_"]).reshape(-1)[0]) if is_classifier else 1
    trees = [_tree(estimator.state["tree_"], classes) for estimator in estimators]
    builder = ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=Metadata(
            num_feature=features,
            task_type="kMultiClf" if is_classifier else "kRegressor",
            average_tree_output=True,
            num_target=1,
            num_class=[classes],
            leaf_vector_shape=(1, classes),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=len(trees),
            target_id=[0] * len(trees),
            class_id=[-1 if classes > 1 else 0] * len(trees),
        ),
        postprocessor=PostProcessorFunc(
            name="identity_multiclass" if is_classifier else "identity"
        ),
        base_scores=[0.0] * classes,
    )
    for tree in trees:
        _add(builder, tree, features)
    return builder.commit()


def _tree(tree: Made, classes: int) -> _Tree:
    nodes, values = tree.state["nodes"], np.asarray(tree.state["values"], np.float64)
    values = values.reshape(len(nodes), -1)
    if values.shape[1] != classes:
        raise ValueError(f"a tree has values of {values.shape[1]} classes, and the model {classes}")
    if classes > 1:
        totals = values.sum(axis=1, keepdims=True)
        values = np.divide(values, totals, out=np.zeros_like(values), where=totals > 0)
    # Releases before 1.3 do not know missing values.
    has_missing = "missing_go_to_left" in (nodes.dtype.names or ())
    return _Tree(
        left=nodes["left_child"],
        right=nodes["right_child"],
        feature=nodes["feature"],
        threshold=_rounded_down(nodes["threshold"]),
        missing_go_left=nodes["missing_go_to_left"] if has_missing else np.zeros(len(nodes)),
        values=values.astype(np.float32),
    )


def _rounded_down(thresholds: Any) -> Any:
    """Return the largest 32-bit number up to each of the 64-bit ones."""
    with np.errstate(over="ignore"):
        nearest = thresholds.astype(np.float32)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest.astype(np.float64) > thresholds, below, nearest)


def _add(builder: Any, tree: _Tree, features: int) -> None:
    builder.start_tree()
    for node, left in enumerate(tree.left.tolist()):
        builder.start_node(node)
        if left == _LEAF:
            values: Sequence[float] = tree.values[node].tolist()
            builder.leaf(values if len(values) > 1 else values[0])
        else:
            feature = int(tree.feature[node])
            if not 0 <= feature < features:
                raise ValueError(f"a tree splits by feature {feature:,} of {features:,}")
            builder.numerical_test(
                feature,
                float(tree.threshold[node]),
                default_left=bool(tree.missing_go_left[node]),
                opname="<=",
                left_child_key=left,
                right_child_key=int(tree.right[node]),
            )
        builder.end_node()
    builder.end_tree()
