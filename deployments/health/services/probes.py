"""Send the golden requests of a model to the stable revision, through the same pod proxy as a rollout does (ADR 15)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deployments.models import GoldenRequest, Revision
from deployments.quality.domain import golden_requests, output_comparison
from deployments.quality.domain.output_comparison import BadOutputs
from deployments.quality.selectors import quality
from deployments.serving.services import pod_inference
from deployments.serving.services.pod_inference import NotAnswered
from deployments.states import HealthVerdict
from fleet.kube.domain.pod_proxy import PodResponse


@dataclass(frozen=True, slots=True)
class Probed:
    verdict: HealthVerdict
    message: str


def probe(revision: Revision, *, renew: Callable[[], bool]) -> Probed:
    """Send all golden requests once and judge the answers. `renew` renews the lease and returns False when it
    was lost.
    """
    rows = list(quality.golden_requests_of(revision.version.model))
    if not rows:
        return Probed(HealthVerdict.NOT_KNOWN, "the model has no golden requests")
    wrong: list[str] = []
    try:
        for row in rows:
            if not renew():
                return Probed(HealthVerdict.NOT_KNOWN, "another worker took over")
            if problem := _problem(row, pod_inference.infer(revision, row.request)):
                wrong.append(f"{row.name}: {problem}")
    except NotAnswered as error:
        return Probed(HealthVerdict.NOT_KNOWN, f"no response: {error}")
    if wrong:
        text = f"{len(wrong)} of {len(rows)} golden requests failed: {wrong[0]}"
        return Probed(HealthVerdict.FAILED, text)
    return Probed(HealthVerdict.OK, f"{len(rows)} of {len(rows)} golden requests passed")


def _problem(row: GoldenRequest, answer: PodResponse) -> str:
    """Say why the answer is wrong. Empty when it is within tolerance."""
    if answer.is_cut:
        return "the response is larger than 2 MB"
    try:
        body: Any = json.loads(answer.body)
        if answer.status >= 400:
            return f"the model returned HTTP {answer.status}"
        outputs = output_comparison.read(body)
    except (ValueError, RecursionError, BadOutputs):
        return f"the model returned HTTP {answer.status} with an invalid answer"
    expected = golden_requests.read_expected(row.expected)
    allowed = golden_requests.tolerances_of(row.tolerances)
    for difference in output_comparison.compare(expected, outputs, allowed):
        if not difference.is_within:
            return f"{difference.output}: {difference.mismatch}"
    return ""
