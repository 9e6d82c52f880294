"""Golden requests on the pages: saving an answer, the list of a model, what a candidate answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.guards.domain.evidence import Verdict
from deployments.models import Deployment, GoldenRequest, GoldenResult, Model, Rollout
from deployments.quality.domain import golden_requests
from deployments.quality.domain import output_comparison as outputs
from deployments.quality.domain.output_comparison import Difference
from deployments.quality.selectors import quality
from deployments.quality.selectors.quality import BeforeTrafficRow
from deployments.registry.domain import signatures
from deployments.registry.domain.signatures import Tensor
from deployments.serving.services.try_it import TrialResponse
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action

# An example to write after, not the whole request of a model with thousands of inputs.
_MOST_TENSORS = 50
_UNKNOWN = (Tensor("…", "FP32", (1,)),)
_STATES = {Verdict.PASSED: "pass", Verdict.FAILED: "fail", Verdict.NOT_ENOUGH: "waiting"}


@dataclass(frozen=True, slots=True)
class OutputLine:
    """An output over all requests that both sides answered. None means not known."""

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
    """Return the context of `pages/_before_traffic.html`, which is empty for a rollout without golden requests."""
    state = quality.before_traffic(rollout=rollout)
    lines = _output_lines(state.rows)
    both = [row for row in state.rows if row.against_stable]
    differing = sum(not _is_same(row) for row in both)
    return {
        "before_traffic": state,
        "before_traffic_state": _STATES[state.verdict],
        "signature_state": _STATES[state.signature_verdict],
        "answers": [_answer_line(row) for row in state.rows],
        "output_lines": lines,
        "disagreement": _disagreement(len(both), differing),
        "has_before_traffic": bool(state.rows) or state.verdict != Verdict.PASSED,
    }


def golden_lines(model: Model) -> list[GoldenLine]:
    """Return the golden requests of a model, each with the last answer that a candidate gave."""
    rows = list(quality.golden_requests_of(model))
    last = quality.last_results(rows)
    return [
        GoldenLine(
            row=row,
            outputs=", ".join(
                output.name for output in golden_requests.read_expected(row.expected)
            ),
            tolerances=_format_tolerances(row),
            last=last.get(row.pk),
        )
        for row in rows
    ]


def saving_context(
    user: User, deployment: Deployment, trial: TrialResponse | None, body: str
) -> dict[str, Any]:
    """Return the context of the form that saves an answer. `saving` is None where there is nothing to save."""
    stable = deployment.stable_revision
    if trial is None or stable is None or not trial.is_success or trial.is_cut:
        return {"saving": None}
    if not policy.is_allowed(user, Action.UPLOAD, deployment):
        return {"saving": None}
    if max(len(body), trial.size_bytes) > golden_requests.MOST_BYTES:
        return {"saving": None, "saving_refusal": "Too large for a golden request."}
    return {
        "saving": {
            "model": stable.version.model,
            "request": body,
            "expected": trial.text,
            "version_id": trial.version_id or "",
        }
    }


def example_of(model: Model) -> str:
    """Return the text that the form is prefilled with: a golden request in the shape of the model's signature."""
    signature = signatures.truncate(quality.signature_of(model), _MOST_TENSORS)
    inputs = [_example_tensor(tensor) for tensor in signature.inputs or _UNKNOWN]
    outputs_ = [_example_tensor(tensor) for tensor in signature.outputs or _UNKNOWN]
    numbers = [output["name"] for output in outputs_ if output["datatype"] in outputs.FLOATS]
    parts = {
        "request": {"inputs": inputs},
        "expected": {"outputs": outputs_},
        "tolerances": {name: {"absolute": 0.0001, "relative": 0.001} for name in numbers},
    }
    lines = (f'  "{name}": {json.dumps(part, ensure_ascii=False)}' for name, part in parts.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _example_tensor(tensor: Tensor) -> dict[str, Any]:
    """Return an example of a tensor. Its data is for the person to fill in."""
    shape = [max(size, 1) for size in tensor.dims]
    return {
        "name": tensor.name,
        "datatype": tensor.protocol_dtype,
        "shape": shape,
        "data": [],
    }


def _answer_line(row: BeforeTrafficRow) -> AnswerLine:
    if not row.against_stable:
        return AnswerLine(row, _STATES[row.verdict], row.stable_message, is_same=False)
    wrong = [difference for difference in row.against_stable if not difference.is_within]
    text = "; ".join(f"{difference.output}: {_describe(difference)}" for difference in wrong)
    return AnswerLine(row, _STATES[row.verdict], text or "the same", is_same=not wrong)


def _describe(difference: Difference) -> str:
    if difference.largest_absolute is None:
        return f"{difference.beyond} of {difference.elements} differ"
    return f"up to {difference.largest_absolute:.4g} apart"


def _is_same(row: BeforeTrafficRow) -> bool:
    return all(difference.is_within for difference in row.against_stable)


def _output_lines(rows: Sequence[BeforeTrafficRow]) -> list[OutputLine]:
    by_output: dict[str, list[Difference]] = {}
    for row in rows:
        for difference in row.against_stable:
            by_output.setdefault(difference.output, []).append(difference)
    return [
        OutputLine(
            name=name,
            requests=len(answers),
            differing=sum(not answer.is_within for answer in answers),
            elements=sum(answer.elements for answer in answers),
            beyond=sum(answer.beyond for answer in answers),
            largest_absolute=_largest(answer.largest_absolute for answer in answers),
            largest_relative_percent=_percent(
                _largest(answer.largest_relative for answer in answers)
            ),
        )
        for name, answers in sorted(by_output.items())
    ]


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def _disagreement(answered: int, differing: int) -> str:
    if not answered:
        return ""
    if not differing:
        return f"Stable gives the same result for all {answered}"
    rate = f"{100 * differing / answered:.0f}%"
    return f"Stable gives a different result for {differing} of {answered} ({rate})"


def _format_tolerances(row: GoldenRequest) -> list[str]:
    stated = golden_requests.tolerances_of(row.tolerances)
    texts = []
    for output in golden_requests.read_expected(row.expected):
        allowed = outputs.tolerance_of(output, stated)
        exact = output.datatype not in outputs.FLOATS or allowed == outputs.EXACT
        text = "exact" if exact else f"± {allowed.absolute:g} + {100 * allowed.relative:g}%"
        texts.append(f"{output.name} {text}")
    return texts
