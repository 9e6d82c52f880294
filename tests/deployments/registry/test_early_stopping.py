"""A data scientist who stopped training early gets the answers of their own XGBoost, not those of all rounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton_http

from deployments.registry.domain import signatures
from deployments.registry.domain.forests import early_stopping
from deployments.registry.domain.not_servable import NotServable
from deployments.states import VersionState
from tests.deployments import real_triton
from tests.deployments.uploading import Upload
from tests.fixtures import forest_models

BEST, STORED = 4, 12


def train(estimator: str = "XGBClassifier", *, classes: int = 2, **params: Any) -> Any:
    """A wrapper whose early stopping found its best at round BEST; all STORED rounds are in the file."""
    import xgboost

    values = forest_models.rows(300, seed=7)
    label = np.nan_to_num(values[:, 0] + values[:, 1] * values[:, 2])
    if estimator == "XGBClassifier":
        label = np.digitize(label, np.linspace(-0.5, 0.5, classes - 1))
    more = {"group": [100] * 3} if estimator == "XGBRanker" else {}
    if estimator == "XGBRanker":
        label = np.digitize(label, [0, 1])
    if params.get("objective") == "count:poisson":
        label = np.abs(label)
    params = {"n_estimators": STORED, "max_depth": 3, "random_state": 3, **params}
    model = getattr(xgboost, estimator)(**params).fit(values, label, **more)
    model.get_booster().set_attr(best_iteration=str(BEST))
    return model


def answers_of(model: Any, rows: Any) -> Any:
    if not hasattr(model, "predict_proba"):
        return model.predict(rows).reshape(len(rows), -1)
    chances = model.predict_proba(rows)
    return chances[:, 1:] if chances.shape[1] == 2 else chances


Case = tuple[str, dict[str, Any], str]
CASES: dict[str, Case] = {
    "binary": ("XGBClassifier", {}, "m.json"),
    "classes": ("XGBClassifier", {"classes": 3}, "m.ubj"),
    "numbers": ("XGBRegressor", {}, "m.ubj"),
    "counts": ("XGBRegressor", {"objective": "count:poisson"}, "m.json"),
    "dart": ("XGBRegressor", {"booster": "dart", "rate_drop": 0.3}, "m.ubj"),
    "several": ("XGBClassifier", {"classes": 3, "num_parallel_tree": 3}, "m.json"),
    "ranked": ("XGBRanker", {}, "m.json"),
}


@pytest.mark.django_db
def test_triton_answers_with_the_rounds_of_the_wrapper(verified: Upload, tmp_path: Path) -> None:
    models = {}
    for name, (estimator, params, filename) in CASES.items():
        model = train(estimator, **params)
        model.save_model(tmp_path / filename)
        content = (tmp_path / filename).read_bytes()
        version = verified(content, model=name, filename=filename, head=content[:4096])
        assert (version.state, version.state_reason) == (VersionState.READY, ""), name
        (read,) = [row for row in version.checks if row["name"] == "Inputs and outputs"]
        assert f"{BEST + 1} of {STORED} rounds are served" in read["detail"], name
        models[name] = (model, version)
    # The served files, as they are laid out.
    for name, (_, version) in models.items():
        backend = signatures.from_json(version.signature).backend
        assert backend.model_file == "checkpoint.tl", name
        lay_out(version, tmp_path / "models" / name)
    rows = forest_models.rows(64)
    child, port = real_triton.start(tmp_path)
    try:
        served = {name: ask(port, name, rows) for name in models}
    finally:
        child.kill()

    for name, (model, _) in models.items():
        np.testing.assert_allclose(
            served[name], answers_of(model, rows), rtol=1e-5, atol=1e-6, err_msg=name
        )
        everything = answers_of(cleared(model), rows)
        assert not np.allclose(served[name], everything, atol=1e-3), name


def cleared(model: Any) -> Any:
    model.get_booster().set_attr(best_iteration=None)
    return model


def lay_out(version: Any, folder: Path) -> None:
    from deployments.registry.gateways import object_store

    for item in version.laid_out:
        path = folder / str(item["key"]).removeprefix(version.repository_prefix).partition("/")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(object_store.store().read(item["key"], item["version_id"])))


def ask(port: int, name: str, rows: Any) -> Any:
    client = triton_http.InferenceServerClient(f"127.0.0.1:{port}")
    parts = []
    for start in range(0, len(rows), 32):
        part = rows[start : start + 32]
        given = triton_http.InferInput("input__0", list(part.shape), "FP32")
        given.set_data_from_numpy(part)
        parts.append(client.infer(name, [given]).as_numpy("output__0"))
    client.close()
    return np.concatenate(parts)


def saved(model: Any, folder: Path, change: Callable[[dict[str, Any]], None]) -> bytes:
    model.save_model(folder / "m.json")
    tree = json.loads((folder / "m.json").read_bytes())
    change(tree["learner"]["attributes"])
    return json.dumps(tree).encode()


@pytest.mark.django_db
def test_a_booster_is_served_whole_as_its_predict_does_and_the_page_says_so(
    verified: Upload, tmp_path: Path
) -> None:
    model = train()
    model.get_booster().save_model(tmp_path / "m.json")
    content = (tmp_path / "m.json").read_bytes()

    version = verified(content, filename="m.json", head=content[:4096])

    assert version.state == VersionState.READY
    assert signatures.from_json(version.signature).backend.model_file == "xgboost.json"
    (runtime,) = [row for row in version.checks if row["name"] == "Runtime"]
    assert runtime["ok"] is False
    assert f"All {STORED} rounds are served, as Booster.predict does" in runtime["detail"]
    assert f"booster[:{BEST + 1}].save_model('model.json')" in runtime["detail"]


@pytest.mark.django_db
@pytest.mark.parametrize("value", ["12", "-1", "99999999999", "four"])
def test_a_best_round_that_the_file_lacks_is_refused_as_the_library_refuses_it(
    verified: Upload, tmp_path: Path, value: str
) -> None:
    content = saved(train(), tmp_path, lambda row: row.update(best_iteration=value))

    version = verified(content, filename="m.json", head=content[:4096])

    assert version.state == VersionState.FAILED
    assert "best_iteration" in version.state_reason
    assert "booster.set_attr(best_iteration=None)" in version.state_reason


WRAPPER = {"scikit_learn": "{}"}
CLASSIFIER, BOOSTER = "xgboost.sklearn.XGBClassifier", "xgboost.core.Booster"


@pytest.mark.parametrize(
    ("attributes", "per_round", "saved_by", "served"),
    [
        ({}, 1, "", 10),
        (WRAPPER, 1, "", 10),
        ({"best_iteration": "3"}, 1, "", 10),
        ({"best_iteration": "3", **WRAPPER}, 1, "", 4),
        ({"best_iteration": "9", **WRAPPER}, 1, "", 10),
        ({"best_iteration": "0", **WRAPPER}, 1, "", 1),
        # As releases before 2.0 wrote it: trees of a class.
        ({"best_ntree_limit": "4", **WRAPPER}, 1, "", 4),
        ({"best_ntree_limit": "6", **WRAPPER}, 3, "", 2),
        ({"best_ntree_limit": "0", **WRAPPER}, 1, "", 10),
        ({"best_ntree_limit": "6", "best_iteration": "1", **WRAPPER}, 3, "", 2),
        # MLflow says what it loads the file with.
        ({"best_iteration": "3"}, 1, CLASSIFIER, 4),
        ({"best_iteration": "3", **WRAPPER}, 1, BOOSTER, 10),
    ],
)
def test_the_rounds_that_are_served(
    attributes: dict[str, str], per_round: int, saved_by: str, served: int
) -> None:
    rounds = early_stopping.choose(
        attributes, stored=10, trees_per_round=per_round, saved_by=saved_by
    )

    assert rounds.served == served
    assert bool(rounds.note) == (rounds.is_cut or rounds.is_doubtful)


def test_a_limit_that_is_no_whole_round_is_refused() -> None:
    with pytest.raises(NotServable, match="best_ntree_limit"):
        early_stopping.choose({"best_ntree_limit": "5"}, stored=10, trees_per_round=3)
