"""What a refusal advises works: the advice is followed here, and the model is then accepted."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.utils
import pytest
from onnx import TensorProto, helper

from deployments.registry.domain import onnx as onnx_files
from deployments.registry.domain import onnx_loading
from deployments.registry.domain.forests import reading
from deployments.registry.domain.not_servable import NotServable


def classifier_with_zip_map() -> Any:
    """As CatBoost and skl2onnx end a classifier."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["features"],
            ["label", "probability_tensor"],
            domain="ai.onnx.ml",
            coefficients=[1.0, 0.0, 0.0, 1.0],
            intercepts=[0.0, 0.0],
            classlabels_ints=[0, 1],
            multi_class=0,
            post_transform="SOFTMAX",
        ),
        helper.make_node(
            "ZipMap",
            ["probability_tensor"],
            ["probabilities"],
            domain="ai.onnx.ml",
            classlabels_int64s=[0, 1],
        ),
    ]
    row = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
        helper.make_value_info("probabilities", helper.make_sequence_type_proto(row)),
    ]
    inputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 2])]
    graph = helper.make_graph(nodes, "classifier", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_a_zip_map_is_cut_off_by_what_the_refusal_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save_model(classifier_with_zip_map(), "model.onnx")
    with pytest.raises(NotServable, match="is a map for each row") as refusal:
        onnx_files.read(Path("model.onnx"))

    advised = re.search(r"extract_model\('(.+)', '(.+)', \[(.+)\], \[(.+)\]\)", str(refusal.value))
    assert advised is not None
    source, target, *names = advised.groups()
    inputs, outputs = ([name.strip(" '") for name in text.split(",")] for text in names)
    onnx.utils.extract_model(source, target, inputs, outputs)

    signature = onnx_files.read(Path(target)).signature
    assert [(t.name, t.dtype) for t in signature.outputs] == [
        ("label", "INT64"),
        ("probability_tensor", "FP32"),
    ]
    label, probabilities = onnx_loading.open_session(target).run(
        None, {"features": np.array([[0, 2]], np.float32)}
    )
    assert label.tolist() == [1]
    assert np.allclose(probabilities, [[0.1192, 0.8808]], atol=1e-4)


def test_names_that_fill_a_page_are_left_out_of_the_advice(tmp_path: Path) -> None:
    model = classifier_with_zip_map()
    model.graph.input[0].name = model.graph.node[0].input[0] = "f" * 900
    onnx.save_model(model, tmp_path / "model.onnx")

    with pytest.raises(NotServable, match="with the input of ZipMap") as refusal:
        onnx_files.read(tmp_path / "model.onnx")

    assert "fff" not in str(refusal.value)


def lower_case(**attributes: str) -> Any:
    node = helper.make_node(
        "StringNormalizer", ["text"], ["lower"], case_change_action="LOWER", **attributes
    )
    texts = [
        helper.make_tensor_value_info(name, TensorProto.STRING, [1]) for name in ("text", "lower")
    ]
    graph = helper.make_graph([node], "lower", texts[:1], texts[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_missing_locale_is_named_with_one_that_is_there(tmp_path: Path) -> None:
    path = str(tmp_path / "model.onnx")
    onnx.save_model(lower_case(locale="xx_XX.UTF-8"), path)
    with pytest.raises(NotServable, match=r"Name C\.UTF-8") as refusal:
        onnx_loading.load({"path": path})
    assert os.fspath(tmp_path) not in str(refusal.value)

    onnx.save_model(lower_case(locale="C.UTF-8"), path)

    assert onnx_loading.load({"path": path})["outputs"] == ["lower"]
    (lower,) = onnx_loading.open_session(path).run(None, {"text": np.array(["GUT ÜBER"])})
    assert lower.tolist() == ["gut über"]


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        ("Treelite does not yet support XGBoost models with categorical encoder", "cat.codes"),
        ("LightGBM models with linear trees (linear_tree=True) are not supported", "Train trees"),
        ("the file is damaged, or holds no trees (gblinear)", "other than gblinear"),
        ("something else that is long enough", "Save a model of trees again"),
    ],
)
def test_what_treelite_refuses_has_its_own_fix(reason: str, fix: str) -> None:
    assert fix in reading.describe_refusal(f"/src/a.cc:10: {reason}\nStack trace")
