"""The column of a waiting load test: written and read by one class."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from deployments.models import ModelVersion
from deployments.registry.domain.load_tests.examined_version import ExaminedVersion
from deployments.registry.domain.load_tests.results import LoadOutcome, LoadTest

EXAMINED = ExaminedVersion(
    format="onnx",
    sha256="ab",
    scan={"engines": []},
    scan_engines="rules 3",
    signature={"inputs": [], "vram_parts_mib": {"weights": 3}},
    vram_estimate_mib=512,
    repository_prefix="vision/detector/1/",
    config_pbtxt="",
    laid_out=[{"key": "vision/detector/1/model.onnx", "sha256": "cd"}],
    checks=[{"name": "Size", "ok": True, "detail": "3 bytes"}],
)


def test_what_was_written_is_read_again() -> None:
    stored = json.loads(json.dumps(EXAMINED.to_json()))

    assert ExaminedVersion.from_json(stored) == EXAMINED


def test_each_field_is_a_column_of_a_version() -> None:
    columns = {field.name for field in ModelVersion._meta.get_fields()}

    assert {field.name for field in fields(ExaminedVersion)} - columns == set()


@pytest.mark.parametrize("columns", [{}, {**EXAMINED.to_json(), "state": "ready"}])
def test_other_columns_are_not_read(columns: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        ExaminedVersion.from_json(columns)


def test_a_result_is_added_to_the_signature_and_nothing_else_changes() -> None:
    loaded = LoadTest(LoadOutcome.ANSWERED, memory_mib=9)

    measured = EXAMINED.with_load_test(loaded)

    assert measured.to_json() == {
        **EXAMINED.to_json(),
        "signature": {**EXAMINED.signature, "load_test": loaded.to_json()},
    }
    assert EXAMINED.with_load_test(None) == EXAMINED


def test_rows_for_the_load_test_wait_in_the_signature_and_are_not_kept() -> None:
    values: dict[str, Any] = {field.name: "" for field in fields(ExaminedVersion)}
    values["signature"] = {"inputs": [], "sample": {"count": 3}}
    examined = ExaminedVersion.from_json(values)

    assert examined.sample == {"count": 3}
    assert examined.columns()["signature"] == {"inputs": []}
    assert ExaminedVersion.from_json(examined.to_json()) == examined
