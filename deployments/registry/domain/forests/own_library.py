"""Predict with the library that trained a forest: XGBoost or LightGBM, in the sandbox alone.

Both are imported by the tasks that need them: they start threads, and bring SciPy along.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from deployments.registry.domain.forests import class_names, early_stopping
from deployments.registry.domain.forests.early_stopping import Rounds
from deployments.registry.domain.not_servable import NotServable, printable

_SOFTMAX: Final = "multi:softmax"
# Time and place in the library's own source.
_PLACE: Final = re.compile(r"^\[[\d:]+\] \S+: ")
_ALL_ROUNDS: Final = Rounds(0, 0)
_REFUSED: Final = (
    "{library} itself cannot load the file: {reason}. Save the model again with save_model."
)


@dataclass(frozen=True, slots=True)
class OwnLibrary:
    """A model that the user's own library loaded. `predict` takes 32-bit rows and returns a row of 64-bit
    scores for each. `cut` is the model of XGBoost with the served rounds alone, None if all are served.
    """

    name: str
    predict: Callable[[Any], Any]
    rounds: Rounds = _ALL_ROUNDS
    cut: Any = None
    class_names: tuple[str, ...] = ()


def open_xgboost(path: str, *, saved_by: str) -> OwnLibrary:
    """Load a model with XGBoost. Raises NotServable for what XGBoost does not load, or does not predict with."""
    import xgboost  # noqa: PLC0415  see above

    name = f"XGBoost {xgboost.__version__}"
    try:
        # By its content: by name, XGBoost takes every file but .json for UBJSON.
        booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(Path(path).read_bytes()))
        stored = booster.num_boosted_rounds()
        attributes = {str(key): str(value) for key, value in booster.attributes().items()}
    except (xgboost.core.XGBoostError, AssertionError, ValueError, TypeError) as error:
        raise NotServable(_describe(name, error)) from error
    trees = int(_find(booster, "num_parallel_tree") or 1)
    rounds = early_stopping.choose(
        attributes, stored=stored, trees_per_round=trees, saved_by=saved_by
    )
    is_softmax = _find(booster, "objective") == _SOFTMAX

    def predict(rows: Any) -> Any:
        data = xgboost.DMatrix(
            rows,
            missing=np.nan,
            nthread=1,
            feature_types=booster.feature_types,
            enable_categorical=True,
        )
        scores = booster.predict(
            data,
            iteration_range=(0, rounds.served),
            validate_features=False,
            output_margin=is_softmax,
        )
        scores = np.asarray(scores, np.float64).reshape(len(rows), -1)
        return _softmax(scores) if is_softmax else scores

    cut = booster[: rounds.served] if rounds.is_cut else None
    return OwnLibrary(name, predict, rounds, cut, class_names.read_from_xgboost(attributes))


def open_lightgbm(path: str) -> OwnLibrary:
    """Load a model with LightGBM. Raises NotServable for what LightGBM does not load, and OSError where its own
    libraries are missing.
    """
    import lightgbm  # noqa: PLC0415  see above

    name = f"LightGBM {lightgbm.__version__}"
    try:
        booster = lightgbm.Booster(model_str=Path(path).read_text())
    except (lightgbm.basic.LightGBMError, ValueError, TypeError, KeyError) as error:
        raise NotServable(_describe(name, error)) from error

    def predict(rows: Any) -> Any:
        scores = booster.predict(rows.astype(np.float64), num_threads=1)
        return np.asarray(scores, np.float64).reshape(len(rows), -1)

    return OwnLibrary(name, predict)


def _find(booster: Any, name: str) -> str:
    """Find a setting of the model in XGBoost's own description of it. Empty if it has none."""
    left = [json.loads(booster.save_config())]
    for value in left:
        if isinstance(value, dict):
            if isinstance(value.get(name), str):
                return str(value[name])
            left.extend(value.values())
    return ""


def _softmax(margins: Any) -> Any:
    shifted = np.exp(margins - margins.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _describe(library: str, error: Exception) -> str:
    lines = [_PLACE.sub("", line).strip() for line in str(error).splitlines() if line.strip()]
    reason = printable(lines[0] if lines else type(error).__name__)[:160].rstrip(".")
    return _REFUSED.format(library=library, reason=reason)
