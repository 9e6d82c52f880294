"""Generated rows that take the branches of a forest apart: values at its thresholds and beside them, missing
values, zeros and categories.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import numpy as np

_MOST_ROWS: Final = 256
_LEAST_ROWS: Final = 4
_MOST_NUMBERS: Final = 1_000_000
# Of one feature.
_MOST_VALUES: Final = 300
_SHARE_MISSING: Final = 0.1
_SHARE_ZERO: Final = 0.05
_SHARE_OTHER: Final = 0.15
# Some GPUs flush smaller numbers to zero, and LightGBM takes those up to 1e-35 for it, without a word in the file.
_SMALLEST: Final = np.float32(1e-30)
# Treelite's node types of splits.
_NUMERIC, _CATEGORICAL = 1, 2
# Categories are whole numbers from 0; an unknown one of either side is tried too.
_NO_CATEGORY: Final = -1.0


def make_rows(model: Any, *, has_missing: bool = True) -> Any:
    """Make 32-bit rows for a model of Treelite, the same for the same model. Without `has_missing`, none of the
    values is NaN.
    """
    features = model.num_feature
    count = max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_NUMBERS // features))
    generator = np.random.default_rng([features, model.num_tree])
    rows = generator.standard_normal((count, features), dtype=np.float32) * 3
    found = _find_values(model, generator)
    categorical = _find_categorical(model)
    for feature, values in found.items():
        column = generator.choice(values, count)
        spread = float(np.ptp(values)) or 1.0
        noise = generator.uniform(values.min() - spread / 4, values.max() + spread / 4, count)
        if feature in categorical:
            # Libraries round what is no whole number each in their own way.
            noise = np.maximum(np.round(noise), _NO_CATEGORY)
        is_other = generator.random(count) < _SHARE_OTHER
        rows[:, feature] = np.where(is_other, noise, column)
    chances = generator.random(rows.shape)
    rows[chances < _SHARE_ZERO] = 0
    if has_missing:
        rows[chances > 1 - _SHARE_MISSING] = np.nan
        rows[1] = np.nan
    rows[0] = 0
    return np.clip(rows, np.finfo(np.float32).min, np.finfo(np.float32).max)


def _find_values(model: Any, generator: np.random.Generator) -> dict[int, Any]:
    """Return finite 32-bit values by feature: thresholds with their neighbours, categories with unknown ones."""
    found: dict[int, list[Any]] = defaultdict(list)
    for number in range(model.num_tree):
        tree = model.get_tree_accessor(number)
        _add_thresholds(tree, found)
        if int(tree.get_field("has_categorical_split")[0]):
            _add_categories(tree, found)
    values = {}
    for feature, parts in found.items():
        every = np.unique(np.concatenate(parts))
        every = every[np.isfinite(every)]
        if len(every) > _MOST_VALUES:
            every = generator.choice(every, _MOST_VALUES, replace=False)
        if len(every):
            values[feature] = every
    return values


def _find_categorical(model: Any) -> set[int]:
    trees = (model.get_tree_accessor(number) for number in range(model.num_tree))
    features: set[int] = set()
    for tree in trees:
        is_categorical = tree.get_field("node_type") == _CATEGORICAL
        features.update(tree.get_field("split_index")[is_categorical].tolist())
    return features


def _add_thresholds(tree: Any, found: dict[int, list[Any]]) -> None:
    split = tree.get_field("split_index")
    is_numeric = tree.get_field("node_type") == _NUMERIC
    thresholds = tree.get_field("threshold")
    for feature in np.unique(split[is_numeric]).tolist():
        found[feature].append(_add_neighbours(thresholds[is_numeric & (split == feature)]))


def _add_neighbours(thresholds: Any) -> Any:
    with np.errstate(over="ignore"):
        nearest = np.unique(thresholds).astype(np.float32)
    sides = [np.nextafter(nearest, np.float32(side)) for side in (-np.inf, np.inf)]
    values = np.concatenate([nearest, *sides])
    is_tiny = (values != 0) & (np.abs(values) < _SMALLEST)
    return np.where(is_tiny, np.copysign(_SMALLEST, values), values)


def _add_categories(tree: Any, found: dict[int, list[Any]]) -> None:
    split, categories = tree.get_field("split_index"), tree.get_field("category_list")
    begins, ends = tree.get_field("category_list_begin"), tree.get_field("category_list_end")
    for node in np.flatnonzero(tree.get_field("node_type") == _CATEGORICAL).tolist():
        listed = categories[int(begins[node]) : int(ends[node])].astype(np.float32)
        unknown = [_NO_CATEGORY, 0.0, float(listed.max(initial=0)) + 1]
        found[int(split[node])].append(
            np.append(listed, np.array(unknown, np.float32)).astype(np.float32)
        )
