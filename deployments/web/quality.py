"""Golden requests on the pages: saving an answer, the list of a model, what a candidate answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deployments.domain import golden, outputs
from deployments.domain.evidence import Verdict
from deployments.models import Deployment, GoldenRequest, GoldenResult, Model, Rollout
from deployments.selectors import quality
from deployments.selectors.quality import BeforeTrafficRow
from deployments.services.trials import Trial
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action

_STATES = {Verdict.PASSED: "pass", Verdict.FAILED: "fail", Verdict.NOT_ENOUGH: "waiting"}


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One output over all requests that both sides answered. Numbers that are not known are None."""

    name: str
    requests: int
    differing: int
    elements: int
    beyond: int
    largest_absolute: float | None
    largest_relative_percent: float | None


@dataclass(frozen=True, slots=True)
class AnswerLine:
    row: BeforeTrafficRow
    state: str
    stable: str
    is_same: bool


@dataclass(frozen=True, slots=True)
class GoldenLine:
    row: GoldenRequest
    outputs: str
    tolerances: list[str]
    last: GoldenResult | None


def before_traffic_context(rollout: Rollout) -> dict[str, Any]:
    """For `delivery/_before_traffic.html`, which shows nothing where nothing was asked."""
    found = quality.before_traffic(rollout=rollout)
    lines = _output_lines(found.rows)
    both = [row for row in found.rows if row.against_stable]
    differing = sum(not _is_same(row) for row in both)
    return {
        "before_traffic": found,
        "before_traffic_state": _STATES[found.verdict],
        "signature_state": _STATES[found.signature_verdict],
        "answers": [_answer_line(row) for row in found.rows],
        "output_lines": lines,
        "disagreement": _disagreement(len(both), differing),
        "has_before_traffic": bool(found.rows) or found.verdict != Verdict.PASSED,
    }


def golden_lines(model: Model) -> list[GoldenLine]:
    """The golden requests of a model, each with the last answer that a candidate gave."""
    rows = list(quality.golden_requests_of(model))
    last = quality.last_results(rows)
    return [
        GoldenLine(
            row=row,
            outputs=", ".join(one["name"] for one in row.expected),
            tolerances=_tolerance_words(row),
            last=last.get(row.pk),
        )
        for row in rows
    ]


def saving_context(
    user: User, deployment: Deployment, trial: Trial | None, body: str
) -> dict[str, Any]:
    """For the form that saves an answer; `saving` is None where there is nothing to save."""
    stable = deployment.stable_revision
    if trial is None or stable is None or not trial.is_good or trial.is_cut:
        return {"saving": None}
    if not policy.is_allowed(user, Action.UPLOAD, deployment):
        return {"saving": None}
    if max(len(body), trial.size_bytes) > golden.MOST_BYTES:
        return {"saving": None, "saving_refusal": "Too large to be a golden request."}
    return {
        "saving": {
            "model": stable.version.model,
            "request": body,
            "expected": trial.text,
            "version_id": trial.version_id or "",
        }
    }


def example_of(model: Model) -> str:
    """What the form is prefilled with: the shape of a golden request, with nothing in it."""
    tensor = {"name": "…", "datatype": "FP32", "shape": [1], "data": [0]}
    document = {
        "request": {"inputs": [tensor]},
        "expected": {"outputs": [tensor]},
        "tolerances": {"…": {"absolute": 0.0001, "relative": 0.001}},
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _answer_line(row: BeforeTrafficRow) -> AnswerLine:
    if not row.against_stable:
        return AnswerLine(row, _STATES[row.verdict], row.stable_words, is_same=False)
    wrong = [one for one in row.against_stable if not one["is_within"]]
    words = "; ".join(f"{one['output']}: {_largest_words(one)}" for one in wrong)
    return AnswerLine(row, _STATES[row.verdict], words or "the same", is_same=not wrong)


def _largest_words(one: dict[str, Any]) -> str:
    if one["largest_absolute"] is None:
        return f"{one['beyond']} of {one['elements']} differ"
    return f"up to {one['largest_absolute']:.4g} apart"


def _is_same(row: BeforeTrafficRow) -> bool:
    return all(one["is_within"] for one in row.against_stable)


def _output_lines(rows: Sequence[BeforeTrafficRow]) -> list[OutputLine]:
    by_output: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for one in row.against_stable:
            by_output.setdefault(one["output"], []).append(one)
    return [
        OutputLine(
            name=name,
            requests=len(found),
            differing=sum(not one["is_within"] for one in found),
            elements=sum(one["elements"] for one in found),
            beyond=sum(one["beyond"] for one in found),
            largest_absolute=_largest(found, "largest_absolute"),
            largest_relative_percent=_percent(_largest(found, "largest_relative")),
        )
        for name, found in sorted(by_output.items())
    ]


def _largest(found: Sequence[dict[str, Any]], field: str) -> float | None:
    return max((one[field] for one in found if one[field] is not None), default=None)


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def _disagreement(answered: int, differing: int) -> str:
    if not answered:
        return ""
    rate = f"{differing / answered:.0%}"
    return f"{differing} of {answered} requests are answered differently by stable ({rate})"


def _tolerance_words(row: GoldenRequest) -> list[str]:
    stated = golden.tolerances_of(row.tolerances)
    found = []
    for output in golden.expected_of(row.expected):
        allowed = outputs.tolerance_of(output, stated)
        exact = output.datatype not in outputs.FLOATS or allowed == outputs.EXACT
        words = "exact" if exact else f"± {allowed.absolute:g} + {allowed.relative:.2%}"
        found.append(f"{output.name} {words}")
    return found
