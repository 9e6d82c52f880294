"""The names of a classifier's classes, in the order of its scores, where the file holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from deployments.registry.domain.not_servable import printable

_MOST: Final = 1000
_LONGEST: Final = 100
_WRAPPER: Final = "scikit_learn"


def read_names(values: Any, *, outputs: int) -> tuple[str, ...]:
    """Read `classes_` of scikit-learn. Empty if they are not one name for each score, or only number the
    scores.
    """
    try:
        listed = np.asarray(values).tolist()
    except (TypeError, ValueError):
        return ()
    if not isinstance(listed, list) or len(listed) != max(outputs, 2) or len(listed) > _MOST:
        return ()
    if not all(isinstance(name, str | bool | int | float) for name in listed):
        return ()
    if all(not isinstance(name, str | bool) for name in listed) and listed == [*range(len(listed))]:
        return ()
    return tuple(printable(_show(name))[:_LONGEST] for name in listed)


def read_from_xgboost(attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Read what the wrappers of XGBoost before 1.6 wrote: later ones take numbers alone."""
    try:
        written = json.loads(attributes.get(_WRAPPER, ""))
    except (ValueError, RecursionError):
        return ()
    if not isinstance(written, dict):
        return ()
    encoder = written.get("_le")
    values = encoder.get("classes_") if isinstance(encoder, dict) else written.get("classes_")
    return read_names(values, outputs=len(values)) if isinstance(values, list) else ()


def _show(name: object) -> str:
    return f"{name:g}" if isinstance(name, float) else str(name)
