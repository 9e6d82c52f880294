"""Which files of an MLflow model are served, flavor by flavor, and what a registry may not name."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml

from deployments.imports.domain.addresses import BucketAddress
from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.mlflow import answers, locations, metadata, model_folder, servers
from deployments.imports.domain.mlflow.locations import ProxiedFolder
from deployments.imports.services import mlflow_folders

SERVER = "https://mlflow.example:8443/tracking"
ABOUT = ["MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt", "code/own.py"]


def selected(flavors: dict[str, Any], *paths: str) -> model_folder.Selection:
    model = mlflow_folders.read_model_file(yaml.safe_dump({"flavors": flavors}).encode())
    return model_folder.select(model, [*ABOUT, *paths])


@pytest.mark.parametrize(
    ("flavors", "paths", "files"),
    [
        (
            {"onnx": {"data": "model.onnx"}, "python_function": {}},
            ["model.onnx", "0f3a.data", "input_example.json"],
            {"model.onnx": "model.onnx", "0f3a.data": "0f3a.data"},
        ),
        (
            {"xgboost": {"data": "model.json"}, "python_function": {}},
            ["model.json"],
            {"model.json": "model.json"},
        ),
        (
            {"lightgbm": {"data": "model.lgb", "lgb_version": "4.7.0"}},
            ["model.lgb"],
            {"model.lgb": "model.lgb"},
        ),
        (
            {"pytorch": {"model_data": "data"}},
            ["data/model.pth", "data/pickle_module_info.txt"],
            {"model.pth": "data/model.pth"},
        ),
        ({"pytorch": {"model_data": "data"}}, ["data/model.pt2"], {"model.pt2": "data/model.pt2"}),
        (
            {"transformers": {"model_binary": "model", "components": ["tokenizer"]}},
            [
                "model/config.json",
                "model/model.safetensors",
                "components/tokenizer/tokenizer.json",
                "components/tokenizer/config.json",
            ],
            {
                "config.json": "model/config.json",
                "model.safetensors": "model/model.safetensors",
                "tokenizer.json": "components/tokenizer/tokenizer.json",
            },
        ),
        (
            {"tensorflow": {"saved_model_dir": "tf2model", "model_type": "tf2-module"}},
            ["tf2model/saved_model.pb", "tf2model/variables/variables.index"],
            {
                "saved_model.pb": "tf2model/saved_model.pb",
                "variables/variables.index": "tf2model/variables/variables.index",
            },
        ),
        (
            {"tensorflow": {"data": "data", "model_type": "keras"}},
            ["data/model.keras", "data/keras_module.txt"],
            {"model.keras": "data/model.keras"},
        ),
        (
            {"sklearn": {"pickled_model": "model.pkl"}, "python_function": {}},
            ["model.pkl"],
            {"model.pkl": "model.pkl"},
        ),
    ],
)
def test_the_files_of_a_flavor(
    flavors: dict[str, Any], paths: list[str], files: dict[str, str]
) -> None:
    selection = selected(flavors, *paths)

    assert dict(selection.files) == files
    assert set(selection.left_out) == {*ABOUT, *paths} - set(files.values())


@pytest.mark.parametrize(
    ("flavors", "paths", "message"),
    [
        ({"python_function": {}}, ["model.pkl"], "has only python_function"),
        ({"catboost": {}, "python_function": {}}, ["model.cb"], "has only catboost"),
        ({"sklearn": {"pickled_model": "model.skops"}}, ["model.skops"], "cloudpickle"),
        ({"onnx": {"data": "other.onnx"}}, ["model.onnx"], "not among the model's artifacts"),
        ({"onnx": {"data": "../../other"}}, ["model.onnx"], "not among the model's artifacts"),
        ({"xgboost": {"data": ["a"]}}, ["model.ubj"], "not among the model's artifacts"),
        (
            {"transformers": {"source_model_name": "org/small"}},
            ["components/tokenizer/tokenizer.json"],
            "Import hf://org/small instead",
        ),
    ],
)
def test_a_model_that_cannot_be_served_says_why(
    flavors: dict[str, Any], paths: list[str], message: str
) -> None:
    with pytest.raises(SourceRefused, match=message):
        selected(flavors, *paths)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"flavors: onnx",
        b"flavors: &a [*a]",
        b"flavors: {onnx: !!python/object/apply:os.system [true]}",
        b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nflavors: *c",
        b"[" * 5000,
        b"\xff\xfe",
        b"flavors: {" + b"a: 1, " * 60_000 + b"}",
    ],
)
def test_a_hostile_description_is_refused(content: bytes) -> None:
    with pytest.raises(SourceRefused, match="MLmodel"):
        mlflow_folders.read_model_file(content)


def test_the_signature_is_read_with_columns_and_tensors() -> None:
    inputs = [
        {"name": "age", "type": "double"},
        {"type": "tensor", "tensor-spec": {"dtype": "float32", "shape": [-1, 3]}},
    ]
    text = yaml.safe_dump(
        {
            "flavors": {},
            "signature": {"inputs": json.dumps(inputs), "outputs": "no JSON", "params": None},
        }
    )

    assert mlflow_folders.read_model_file(text.encode()).signature == {
        "inputs": [
            {"name": "age", "type": "double", "shape": None},
            {"name": "", "type": "float32", "shape": [-1, 3]},
        ]
    }


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("mlflow-artifacts:/1/models/m-1/artifacts", ProxiedFolder("1/models/m-1/artifacts")),
        ("mlflow-artifacts://mlflow.example:8443/1/a%20b", ProxiedFolder("1/a b")),
        (f"{SERVER}/api/2.0/mlflow-artifacts/artifacts/1/a", ProxiedFolder("1/a")),
        ("s3://bucket/root/1/a/", BucketAddress("bucket", "root/1/a")),
    ],
)
def test_where_files_are(uri: str, place: object) -> None:
    assert locations.parse(uri, server=SERVER) == place


@pytest.mark.parametrize(
    "uri",
    [
        "/var/mlruns/1/a",
        "file:///etc/passwd",
        "https://evil.example/api/2.0/mlflow-artifacts/artifacts/1/a",
        "https://mlflow.example:8443/other/1/a",
        "mlflow-artifacts://evil.example/1/a",
        "mlflow-artifacts:/../../etc",
        "mlflow-artifacts:/1/%2e%2e/a",
        "mlflow-artifacts:/",
        "gs://bucket/a",
        "dbfs:/a",
        "s3:///a",
    ],
)
def test_no_other_place_is_read(uri: str) -> None:
    with pytest.raises(SourceRefused):
        locations.parse(uri, server=SERVER)


@pytest.mark.parametrize(
    "answer", [None, [], "x", {"model_version": {}}, {"model_version": {"version": "1e9"}}]
)
def test_answers_that_are_no_version_are_refused(answer: Any) -> None:
    with pytest.raises(SourceRefused):
        answers.model_version(answer)


@pytest.mark.parametrize(
    "files", [[{}], [{"path": "a", "file_size": True}], [{"path": "a", "file_size": "1e9"}]]
)
def test_a_list_of_files_without_names_or_sizes_is_refused(files: list[Any]) -> None:
    with pytest.raises(SourceRefused):
        answers.artifact_entries({"files": files})


def test_credentials_become_headers() -> None:
    assert servers.headers_of("") == {}
    assert servers.headers_of("user:pass") == {"Authorization": "Basic dXNlcjpwYXNz"}
    assert servers.headers_of("dapi123") == {"Authorization": "Bearer dapi123"}


@pytest.mark.parametrize(
    "value", ["NaN", math.nan, "Infinity", "-Infinity", math.inf, None, "x", True]
)
def test_a_metric_that_is_no_number_is_left_out_by_name(value: Any) -> None:
    """As the JSON form of protobuf writes it, and as Python's JSON does."""
    rows = [{"key": "auc", "value": 0.9}, {"key": "val_loss", "value": value}]
    run = answers.run({"run": {"info": {"run_id": "1"}, "data": {"metrics": rows}}})
    selection = selected({"xgboost": {"data": "m.json"}}, "m.json")
    version = answers.model_version({"model_version": {"name": "m", "version": "1"}})

    taken, without_place = metadata.metadata_of(version, run, selection, address=SERVER)

    assert taken["metrics"] == {"auc": 0.9}
    assert without_place == ["val_loss"]


@pytest.mark.parametrize(
    "options",
    [
        {"pickled_model": "model.skops", "serialization_format": "skops"},
        {"pickled_model": "model.pkl", "serialization_format": "skops"},
        {"pickled_model": "model.skops"},
    ],
)
def test_a_forest_of_skops_is_refused_with_the_calls_that_work(options: dict[str, Any]) -> None:
    with pytest.raises(SourceRefused) as refusal:
        selected({"sklearn": options}, options["pickled_model"])

    assert (
        'mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")'
        in str(refusal.value)
    )
    assert "mlflow.onnx.log_model(skl2onnx.to_onnx(" in str(refusal.value)


def test_the_class_that_was_logged_is_kept() -> None:
    flavors = {"xgboost": {"data": "m.json", "model_class": "xgboost.sklearn.XGBClassifier"}}
    model = mlflow_folders.read_model_file(yaml.safe_dump({"flavors": flavors}).encode())
    selection = model_folder.select(model, ["m.json"])
    version = answers.model_version({"model_version": {"name": "m", "version": "1"}})

    facts = metadata.facts_of(version, None, model, selection)

    assert facts["model_class"] == "xgboost.sklearn.XGBClassifier"
