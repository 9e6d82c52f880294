"""Triton measures quantiles of its own latencies only where a revision enables them."""

from __future__ import annotations

import pytest

from deployments.manifests.domain import triton_args
from deployments.manifests.domain.metadata import ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec

_FLAG = "--metrics-config=summary_latencies=true"


@pytest.mark.parametrize("engine", [serving_spec.TRITON, serving_spec.KSERVE_TRITON])
@pytest.mark.parametrize("is_on", [False, True])
def test_the_flag_is_set_exactly_when_requested(engine: str, *, is_on: bool) -> None:
    data = {"engine": engine, "instance_type": "g5.xlarge"}
    spec = ServingSpec.from_json({**data, "summary_latencies": True} if is_on else data)

    arguments = triton_args.settings_of(
        ServedRevision(1, "detector", "detector:1", "", "s3://b/p/", spec)
    )

    assert spec.summary_latencies is is_on
    assert (_FLAG in arguments) is is_on
