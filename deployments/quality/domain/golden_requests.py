"""Golden requests: what one may contain, and whether a server's signature matches the version's."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from deployments.quality.domain import output_comparison
from deployments.quality.domain.output_comparison import BadOutputs, Output, Tolerance
from deployments.registry.domain.signatures import ANY, Signature, Tensor
from portal.core.definitions import Rejected, check_names

MOST_PER_MODEL: Final = 20
MOST_BYTES: Final = 256 * 1024
LONGEST_NAME: Final = 60
_MOST_RELATIVE: Final = 1.0
_REQUEST_FIELDS: Final = ("id", "inputs", "outputs", "parameters")
_TENSOR_FIELDS: Final = ("name", "datatype", "shape", "data")
# Answers are pasted as a server sent them; what is not compared is left out.
_ANSWER_FIELDS: Final = ("id", "model_name", "model_version", "outputs", "parameters")
_OUTPUT_FIELDS: Final = (*_TENSOR_FIELDS, "parameters")


def check_name(name: str) -> str:
    """Normalise the spaces of a name and return it. Raises Rejected for a name that is empty, too long or not
    printable.
    """
    text = " ".join(name.split())
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise _bad("name", f"Enter a name of 1 to {LONGEST_NAME} printable characters.")
    return text


def check_request(request: object, signature: Signature) -> dict[str, Any]:
    """Check a request and return it without an id, each input fitting the signature. Raises Rejected."""
    if not isinstance(request, Mapping):
        raise _bad("request", "The request must be a JSON object with inputs, in Triton's format.")
    check_names("request", request, _REQUEST_FIELDS)
    _check_rows("request.inputs", request.get("inputs"), _TENSOR_FIELDS)
    inputs = _outputs_in("request", "inputs", request)
    _check_fit("request", inputs, _on_the_wire(signature, signature.inputs), is_whole=True)
    kept = {name: request[name] for name in ("outputs", "parameters") if name in request}
    made = {"inputs": [tensor.to_json() for tensor in inputs], **kept}
    _check_storable("request", made)
    return made


def check_expected(answer: object, signature: Signature) -> list[dict[str, Any]]:
    """Check the right answer and return its outputs, flat. Raises Rejected."""
    place = "expected.outputs"
    if isinstance(answer, list):
        answer, place = {"outputs": answer}, "expected"
    if not isinstance(answer, Mapping):
        raise _bad("expected", "The expected answer must be a JSON object with outputs.")
    _check_rows(place, answer.get("outputs"), _OUTPUT_FIELDS)
    outputs = _outputs_in("expected", "outputs", answer)
    # After the outputs: the error of a server is no misspelt answer.
    check_names("expected", answer, _ANSWER_FIELDS)
    _check_fit("expected", outputs, _on_the_wire(signature, signature.outputs), is_whole=False)
    made = [output.to_json() for output in outputs]
    _check_storable("expected", made)
    return made


def check_tolerances(
    tolerances: object, expected: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, float]]:
    """Check tolerances, {output: {"absolute", "relative"}}, which are for floating-point outputs only. Raises
    Rejected.
    """
    if not isinstance(tolerances, Mapping):
        raise _bad(
            "tolerances", 'Enter tolerances as {"scores": {"absolute": 0, "relative": 1e-3}}.'
        )
    kinds = {str(row["name"]): str(row["datatype"]) for row in expected}
    made: dict[str, dict[str, float]] = {}
    for name, tolerance in tolerances.items():
        if name not in kinds:
            raise _bad("tolerances", f"The expected answer has no output {name}.")
        if kinds[name] not in output_comparison.FLOATS:
            raise _bad("tolerances", f"{name} is {kinds[name]}, which must match exactly.")
        made[name] = _check_tolerance(name, tolerance)
    return made


def tolerances_of(stored: Mapping[str, Mapping[str, float]]) -> dict[str, Tolerance]:
    return {name: Tolerance(**tolerance) for name, tolerance in stored.items()}


def read_expected(stored: Iterable[Mapping[str, Any]]) -> tuple[Output, ...]:
    return tuple(output_comparison.read_one(row) for row in stored)


def signature_problem(signature: Signature, reported: Mapping[str, Any]) -> str:
    """Describe how the version's signature differs from what the server reports of its model (`GET
    /v2/models/{name}`). A dynamic dimension fits any size. Empty when they match, or when the file has no
    signature.
    """
    if not signature.inputs and not signature.outputs:
        return ""
    sides = (
        ("input", _on_the_wire(signature, signature.inputs), "inputs"),
        ("output", _on_the_wire(signature, signature.outputs), "outputs"),
    )
    for kind, tensors, field in sides:
        rows = reported.get(field)
        listed = rows if isinstance(rows, list) else []
        reported_rows = {row.get("name"): row for row in listed if isinstance(row, Mapping)}
        for tensor in tensors:
            if problem := _tensor_problem(tensor, reported_rows.get(tensor.name)):
                return f"{kind} {tensor.name} {problem}"
        known = {tensor.name for tensor in tensors}
        # More outputs than known do no harm; an unknown input would be missing from every request.
        if kind == "input" and (more := set(reported_rows) - known):
            return f"the server needs an unknown input {min(map(str, more))}"
    return ""


def _on_the_wire(signature: Signature, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    return tuple(replace(tensor, dims=signature.wire_dims(tensor)) for tensor in tensors)


def _tensor_problem(tensor: Tensor, row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "is not reported by the server"
    if row.get("datatype") != tensor.protocol_dtype:
        return f"is {row.get('datatype')} at the server, {tensor.protocol_dtype} in the file"
    shape = row.get("shape")
    sizes = [int(size) for size in shape] if isinstance(shape, list) else []
    if not _fits(tuple(sizes), tensor.dims):
        return f"has shape {sizes} at the server, {list(tensor.dims)} in the file"
    return ""


def _check_rows(place: str, rows: object, known: Sequence[str]) -> None:
    for index, row in enumerate(rows if isinstance(rows, list) else []):
        if isinstance(row, Mapping):
            check_names(f"{place}[{index}]", row, known)


def _outputs_in(field: str, key: str, value: Mapping[str, Any]) -> tuple[Output, ...]:
    try:
        return output_comparison.read({"outputs": value.get(key)})
    except BadOutputs as error:
        message = str(error).replace("outputs", key).replace("an output", f"one of {key}")
        raise _bad(field, f"The {field} is not valid: {message}.") from error


def _check_fit(
    field: str, outputs: Sequence[Output], tensors: Sequence[Tensor], *, is_whole: bool
) -> None:
    """Check that the request fits the signature. Anything fits a version without a known one. Raises Rejected."""
    if not tensors:
        return
    known = {tensor.name: tensor for tensor in tensors}
    for output in outputs:
        tensor = known.get(output.name)
        if tensor is None:
            raise _bad(field, f"The model has no {output.name}; it has {', '.join(known)}.")
        if output.datatype != tensor.protocol_dtype:
            raise _bad(
                field, f"{output.name} is {output.datatype}, but must be {tensor.protocol_dtype}."
            )
        if not _fits(output.shape, tensor.dims):
            raise _bad(
                field,
                f"{output.name} has shape {list(output.shape)}, but must fit {list(tensor.dims)}.",
            )
    missing = sorted(set(known) - {output.name for output in outputs})
    if is_whole and missing:
        raise _bad(field, f"The request lacks {', '.join(missing)}.")


def _fits(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return len(shape) == len(dims) and all(
        ANY in (size, dim) or size == dim for size, dim in zip(shape, dims, strict=True)
    )


def _check_tolerance(name: str, tolerance: object) -> dict[str, float]:
    message = f"{name} needs absolute (0 or more) and relative (0 to 1)."
    if not isinstance(tolerance, Mapping) or not set(tolerance) <= {"absolute", "relative"}:
        raise _bad("tolerances", message)
    made = {"absolute": tolerance.get("absolute", 0.0), "relative": tolerance.get("relative", 0.0)}
    for value in made.values():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < math.inf:
            raise _bad("tolerances", message)
    if made["relative"] > _MOST_RELATIVE:
        raise _bad("tolerances", message)
    return {key: float(value) for key, value in made.items()}


def _check_storable(field: str, value: object) -> None:
    """Check that PostgreSQL can store the JSON: it keeps neither NaN, nor a zero byte, nor half a character."""
    try:
        text = json.dumps(value, allow_nan=False)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _bad(field, "The text contains a lone surrogate.") from error
    except ValueError as error:
        raise _bad(field, "NaN and infinity are not supported. Use finite values.") from error
    if len(text) > MOST_BYTES:
        raise _bad(field, f"It has {len(text):,} bytes as JSON; the limit is {MOST_BYTES:,}.")
    if "\\u0000" in text:
        raise _bad(field, "Text with a zero byte is not supported.")


def _bad(field: str, message: str) -> Rejected:
    return Rejected(message, {field: message})
