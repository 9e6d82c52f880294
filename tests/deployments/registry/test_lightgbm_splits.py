"""LightGBM's own settings: Triton answers as LightGBM does, or the file is refused with the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain.forests import lightgbm_splits, own_library, reading
from deployments.registry.domain.not_servable import NotServable
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.sandbox import Finished, Refused
from deployments.registry.gateways.sandbox_artifact import Access
from tests.artifacts import MemoryArtifact

TASK = "deployments.registry.domain.forests.reading:read"


def table() -> tuple[Any, Any]:
    """Numbers with missing values and zeros; the last feature has 12 categories."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(600, 5))
    values[generator.random(values.shape) < 0.1] = np.nan
    values[generator.random(values.shape) < 0.2] = 0
    values[:, 4] = generator.integers(0, 12, 600)
    return values, np.nan_to_num(values[:, 0]) + values[:, 4] % 3


def save(path: Path, *, values: Any = None, label: Any = None, **params: Any) -> Path:
    import lightgbm

    given_values, given_label = table()
    values = given_values if values is None else values
    label = given_label if label is None else label
    objective = params.get("objective", "")
    if objective.startswith("multi"):
        label = np.digitize(label, [0, 1])
    elif objective in ("poisson", "gamma", "tweedie"):
        label = np.abs(label) + 0.1
    elif objective.startswith(("cross", "binary")):
        label = (label > 1).astype(float)
    categories = params.pop("categorical_feature", "auto")
    data = lightgbm.Dataset(values, label, params={"verbose": -1}, categorical_feature=categories)
    settings = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, **params}
    lightgbm.train(settings, data, 10).save_model(path)
    return path


def read(path: Path) -> Any:
    outcome = sandbox.run(
        TASK,
        {"path": str(path), "format": "lightgbm"},
        limits=sandbox.limits_for(path.stat().st_size),
        access=Access(MemoryArtifact({}, {})),
    )
    if isinstance(outcome, Refused):
        raise NotServable(outcome.message)
    assert isinstance(outcome, Finished), outcome
    return outcome.value


CATEGORIES = {"categorical_feature": [4]}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"use_missing": False},
        CATEGORIES,
        {**CATEGORIES, "use_missing": False},
        {**CATEGORIES, "max_cat_to_onehot": 20},
        {"boosting": "dart"},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
        {"objective": "regression", "reg_sqrt": True},
        {"objective": "binary", "sigmoid": 2.5},
        *({"objective": name} for name in ("poisson", "gamma", "tweedie", "quantile", "mape")),
        *({"objective": name} for name in ("cross_entropy", "cross_entropy_lambda")),
        *({"objective": name, "num_class": 3} for name in ("multiclass", "multiclassova")),
    ],
    ids=str,
)
def test_what_is_accepted_answers_as_lightgbm(tmp_path: Path, params: dict[str, Any]) -> None:
    facts = read(save(tmp_path / "model.txt", **params))

    assert facts["compared"].startswith("LightGBM 4.")
    assert facts["sample"]["count"] == 32
    assert "rows are 32-bit numbers" in facts["notes"][0]


@pytest.mark.parametrize("more", [{}, CATEGORIES, {"boosting": "dart"}], ids=str)
def test_zero_as_missing_is_refused_with_the_way_out(tmp_path: Path, more: dict[str, Any]) -> None:
    path = save(tmp_path / "model.txt", zero_as_missing=True, **more)

    with pytest.raises(NotServable, match=r"zero_as_missing.*with missing values as NaN"):
        read(path)


@given(kinds=st.lists(st.integers(-2, 20), min_size=1, max_size=8))
def test_only_known_splits_pass(tmp_path_factory: Any, kinds: list[int]) -> None:
    path = tmp_path_factory.mktemp("splits") / "model.txt"
    path.write_text(f"tree\nversion=v4\ndecision_type={' '.join(map(str, kinds))}\n")
    is_followed = all(kind in (0, 1, 2, 3, 8, 9, 10, 11) for kind in kinds)

    if is_followed:
        lightgbm_splits.check(str(path))
    else:
        with pytest.raises(NotServable):
            lightgbm_splits.check(str(path))


@pytest.mark.parametrize(
    ("offset", "scale", "is_named"),
    [(0, 1, False), (0, 1e-12, False), (1e4, 1e3, False), (1.7e9, 1e5, True), (1e5, 1e-3, True)],
)
def test_a_feature_that_32_bits_do_not_tell_apart_is_named(
    tmp_path: Path, offset: float, scale: float, is_named: bool
) -> None:
    values, _ = table()
    values[:, 1] = np.random.default_rng(1).uniform(0, scale, 600) + offset
    path = save(
        tmp_path / "model.txt", values=values, label=np.sin(9 * (values[:, 1] - offset) / scale)
    )

    facts = read(path)

    assert ("“Column_1”" in " ".join(facts["warnings"])) is is_named


def test_a_difference_between_the_libraries_is_refused_with_a_row(tmp_path: Path) -> None:
    """As it was before zero_as_missing had a check of its own."""
    import treelite

    path = save(tmp_path / "model.txt", zero_as_missing=True)
    model = treelite.frontend.load_lightgbm_model(path)
    library = own_library.open_lightgbm(str(path))

    with pytest.raises(NotServable, match=r"of 256 generated rows get other scores: a row of \("):
        reading.require_same_answers(model, library.predict, name=library.name)


def test_a_frame_with_categories_says_that_codes_are_sent(tmp_path: Path) -> None:
    path = save(tmp_path / "model.txt")
    lines = path.read_text().replace("pandas_categorical:null", 'pandas_categorical:[["a", "b"]]')
    path.write_text(lines)

    assert "0 = a, 1 = b" in " ".join(read(path)["notes"])
