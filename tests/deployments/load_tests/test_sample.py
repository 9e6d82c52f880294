"""The pod of a load test sends the rows whose scores are known, exactly as they were scored."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from deployments.load_tests.domain import job, load_plan
from deployments.registry.domain.forests import comparison
from deployments.registry.domain.load_tests import requests
from deployments.registry.domain.signatures import Signature, Tensor

SIGNATURE = Signature(
    (Tensor("input__0", "FP32", (-1, 3)),), (Tensor("output__0", "FP32", (-1, 2)),), 8
)


def sample() -> comparison.Sample:
    rows = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    rows[1] = np.nan
    kept = comparison.keep_sample(rows, rows[:, :2], tolerance=1e-5, library="XGBoost 3")
    assert kept is not None
    return kept


def test_the_joined_program_sends_the_same_bodies_as_the_portal() -> None:
    text = load_plan.to_text(SIGNATURE, model="m", seconds=9, is_on_cpu=True, sample=sample())
    program: dict[str, Any] = {"__name__": "pod"}
    exec(compile(job._PROGRAM, "program", "exec"), program)

    sent = [program["request_of"](batch) for batch in json.loads(text)["sample"]]

    assert [body for _, body in sent] == [
        body[header_bytes:] for header_bytes, body in requests.sample_requests(SIGNATURE, sample())
    ]
    heads = [json.loads(head)["inputs"] for head, _ in sent]
    assert [head[0]["shape"] for head in heads] == [[8, 3], [8, 3], [4, 3]]
    assert heads[0][0] == {
        "name": "input__0",
        "datatype": "FP32",
        "shape": [8, 3],
        "parameters": {"binary_data_size": 96},
    }


def test_the_program_has_the_standard_library_alone() -> None:
    names = {
        line.split()[1].partition(".")[0]
        for line in job._PROGRAM.splitlines()
        if line.startswith(("import ", "from "))
    }

    assert names <= sys.stdlib_module_names


def test_a_plan_and_a_result_keep_within_their_limits() -> None:
    rows = np.zeros((300, 400), np.float32)
    wide = comparison.keep_sample(rows, np.zeros((300, 100)), tolerance=1, library="x")

    assert wide is not None
    assert wide.count == 5
    assert len(wide.rows) < 48_000
    assert len(wide.answers) < 2_800
    assert comparison.keep_sample(rows, np.zeros((300, 600)), tolerance=1, library="x") is None
