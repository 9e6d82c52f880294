"""A forest of scikit-learn becomes a version as Treelite's checkpoint, and answers as scikit-learn does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import treelite
import tritonclient.http as triton_http
from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain.forests import reading
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.not_servable import NotServable
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.sandbox import Finished
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments import real_triton
from tests.deployments.uploading import Upload
from tests.fixtures import forest_models
from tests.fixtures.forest_models import ForestModel


@pytest.fixture(scope="module")
def models() -> list[ForestModel]:
    return forest_models.scikit_learn_kinds()


@pytest.mark.django_db
def test_triton_answers_as_scikit_learn_does(
    models: list[ForestModel], verified: Upload, tmp_path: Path
) -> None:
    rows = np.nan_to_num(forest_models.rows(20))
    for model in models:
        version = verified(
            model.content, model=model.name, filename=model.filename, head=model.content[:4096]
        )
        assert (version.state, version.state_reason) == (VersionState.READY, "")
        assert version.format == "treelite_checkpoint"
        folder = tmp_path / "models" / model.name
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "checkpoint.tl").write_bytes(model.content)
        (folder / "config.pbtxt").write_text(version.config_pbtxt)
    child, port = real_triton.start(tmp_path)
    try:
        answers = {model.name: _ask(port, model.name, rows) for model in models}
    finally:
        child.kill()

    for model in models:
        expected = model.predict(rows).reshape(len(rows), -1)
        assert expected.shape[1] == model.outputs
        np.testing.assert_allclose(answers[model.name], expected, rtol=2e-6, atol=2e-6)


def _ask(port: int, name: str, rows: Any) -> Any:
    client = triton_http.InferenceServerClient(f"127.0.0.1:{port}")
    try:
        given_rows = triton_http.InferInput("input__0", list(rows.shape), "FP32")
        given_rows.set_data_from_numpy(rows)
        return client.infer(name, [given_rows]).as_numpy("output__0")
    finally:
        client.close()


class _Tree:
    def __init__(self, left: list[int], right: list[int]) -> None:
        self._fields = {
            "cleft": np.array(left),
            "cright": np.array(right),
            "num_nodes": np.array([len(left)]),
        }

    def get_field(self, name: str) -> Any:
        return self._fields[name]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([0, -1, -1], [2, -1, -1]),
        ([1, 0, -1], [2, 2, -1]),
        ([1, -1, -1], [1, -1, -1]),
        ([1, -1, -1], [9, -1, -1]),
        ([2, -1], [1, -1]),
        ([1, -1, -1], [-1, -1, -1]),
        ([1, -1, -1, -1], [2, -1, -1, -1]),
        ([], []),
    ],
)
def test_nodes_that_are_no_tree_are_refused(left: list[int], right: list[int]) -> None:
    reading._require_tree(_Tree([1, -1, -1], [2, -1, -1]))
    reading._require_tree(_Tree([-1], [-1]))

    with pytest.raises(NotServable, match="not connected as a tree"):
        reading._require_tree(_Tree(left, right))


@pytest.mark.parametrize("cut", [30, 200, -40])
def test_a_cut_off_checkpoint_is_refused(
    models: list[ForestModel], tmp_path: Path, cut: int
) -> None:
    (tmp_path / "a.tl").write_bytes(models[0].content[:cut])

    outcome = sandbox.run(
        "deployments.registry.domain.forests.reading:read",
        {"path": str(tmp_path / "a.tl"), "format": "treelite_checkpoint"},
        limits=sandbox.limits_for(0),
    )

    assert not isinstance(outcome, Finished)


@given(version=st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_any_release_of_version_4_is_detected(version: tuple[int, int]) -> None:
    head = b"".join(number.to_bytes(4, "little") for number in (4, *version))
    content = head + b"\x03\x03" + bytes(100)
    detected = catalogue.detect(MemoryArtifact({"m.tl": content}, {"m.tl": len(content)}))

    assert detected.format.key == "treelite_checkpoint"
    assert treelite.__version__.startswith("4.")
