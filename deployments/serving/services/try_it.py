"""Try a deployment: send one request, bounded in time and size. It goes through the gateway like
any client's, or to one revision directly, which also reaches a candidate without traffic.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from deployments.models import Deployment, Revision
from deployments.registry.domain import signatures
from deployments.registry.domain.metadata import version_metadata
from deployments.serving.domain import file_inputs, inference_call, request_inputs, shown_answer
from deployments.serving.domain.inference_call import Call
from deployments.serving.domain.request_inputs import InputText, RequestInput
from deployments.serving.domain.shown_answer import ShownAnswer
from deployments.serving.gateways import inference
from deployments.serving.selectors import deployments
from deployments.serving.services import pod_inference
from deployments.serving.services.pod_inference import NotAnswered
from portal.accounts import policy
from portal.accounts.policy import Action, Actor
from portal.core import documents
from portal.core.definitions import Rejected
from portal.core.documents import Bounds
from portal.core.errors import Conflict, Invalid, Unavailable

# Of JSON: what a form carries. Files become binary data, which has a bound of its own.
MAX_REQUEST_BYTES = 2_000_000
# The binary data extension of the Open Inference Protocol: the length of the JSON in front of the tensors.
_JSON_LENGTH_HEADER = "Inference-Header-Content-Length"
# Input of a model may contain NUL; the request is not stored.
_BODY = Bounds(may_hold_nul=True)
_FLAT_LIST = re.compile(r"\[\n[^\[\]{}]*\]")
# What a header can carry.
_KEY = re.compile(r"[\x21-\x7e]{1,4096}")
_NEWLINE = re.compile(r"\n\s*")


class TrialTarget(StrEnum):
    GATEWAY = "gateway"
    STABLE = "stable"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A trial request as it is sent: JSON, and the tensors behind it that the JSON only counts. `key` is the caller's,
    empty without one.
    """

    body: str
    binary: bytes = b""
    key: str = ""

    @property
    def json_length(self) -> int:
        return len(self.body.encode())

    @property
    def content(self) -> bytes:
        return self.body.encode() + self.binary

    @property
    def headers(self) -> dict[str, str]:
        if not self.binary:
            return {"Content-Type": "application/json"}
        return {
            "Content-Type": "application/octet-stream",
            _JSON_LENGTH_HEADER: str(self.json_length),
        }


@dataclass(frozen=True, slots=True)
class TrialResponse:
    """The response to a trial request. `version_id` is the version that answered; None where the gateway chose
    between two revisions.
    """

    version_id: int | None
    status: int
    text: str
    size_bytes: int
    is_cut: bool
    milliseconds: float

    @property
    def is_success(self) -> bool:
        return self.status < HTTPStatus.BAD_REQUEST

    @property
    def status_text(self) -> str:
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)


def call_of(revision: Revision) -> Call:
    version = revision.version
    return inference_call.call_of(
        engine=revision.spec["engine"],
        model=version.model.name,
        signature=signatures.from_json(version.signature),
    )


def url_of(deployment: Deployment, revision: Revision) -> str:
    return f"{deployments.url_of(deployment)}/{call_of(revision).path}"


def list_inputs(revision: Revision) -> tuple[RequestInput, ...]:
    """List the inputs that have a field of their own. Empty where a request can only be written as JSON."""
    if "inputs" not in call_of(revision).body:
        return ()
    version = revision.version
    rate = version_metadata.read_sampling_rate(version.metadata)
    return request_inputs.describe_inputs(signatures.from_json(version.signature), rate)


def build_request(inputs: Sequence[RequestInput], texts: Sequence[InputText]) -> TrialRequest:
    """Build the request from what was entered for each input. Raises Invalid."""
    try:
        built = request_inputs.build_request(inputs, texts)
    except Rejected as error:
        raise Invalid(error.message, fields=error.fields) from error
    return TrialRequest(json.dumps(built.body, ensure_ascii=False), built.binary)


def require_room(size: int) -> None:
    """Require that a request can carry so many bytes of files. Raises Invalid."""
    if size > file_inputs.MAX_BYTES:
        raise Invalid(
            f"The values of the files have {size:,} bytes; the limit here is {file_inputs.MAX_BYTES:,}. "
            "Send larger requests from your own code."
        )


def read_texts(inputs: Sequence[RequestInput], body: str) -> tuple[InputText, ...] | None:
    """Return what to enter for each input to get this request. None where the inputs cannot express it."""
    value = read_body(body)
    return request_inputs.read_texts(inputs, value) if inputs and value is not None else None


def read_body(body: str) -> dict[str, Any] | None:
    """Return the request as an object. None if it is not a valid one."""
    try:
        value = documents.read_json(body, _BODY)
    except documents.UnreadableDocument:
        return None
    return value if isinstance(value, dict) else None


def describe_answer(
    deployment: Deployment, trial: TrialResponse, target: TrialTarget, *, has_key: bool = False
) -> ShownAnswer | None:
    """Describe the answer, with the names of classes where the version that answered is certain to have them. None
    for an answer in another protocol, or one that is cut.
    """
    return shown_answer.describe_answer(
        trial.text, _class_names(deployment, target, has_key=has_key)
    )


def _class_names(deployment: Deployment, target: TrialTarget, *, has_key: bool) -> tuple[str, ...]:
    stable, candidate = deployment.stable_revision, deployment.candidate_revision
    reached = {TrialTarget.STABLE: (stable,), TrialTarget.CANDIDATE: (candidate,)}
    is_direct = needs_key(deployment) and not has_key
    revisions = reached.get(target, (stable,) if is_direct else (stable, candidate))
    names = {call_of(revision).class_names for revision in revisions if revision is not None}
    return names.pop() if len(names) == 1 else ()


def send(
    *,
    actor: Actor,
    deployment_id: int,
    body: str,
    binary: bytes = b"",
    key: str = "",
    target: TrialTarget = TrialTarget.GATEWAY,
) -> TrialResponse:
    """Send a request to a deployment. Raises Invalid unless the body is a JSON object within the limit,
    Conflict without a revision to send it to, Unavailable without a response. `binary` are the tensors that the body
    only counts; with the `key` of a caller the gateway is asked where it needs one.
    """
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.VIEW, deployment)
    if deployment.stable_revision is None or deployment.is_retired:
        raise Conflict(f"{deployment} has no serving revision.", code="not_serving")
    request = _check(TrialRequest(body, binary, key))
    if target == TrialTarget.GATEWAY and (key or not needs_key(deployment)):
        return _through_gateway(deployment, deployment.stable_revision, request)
    revision = deployment.stable_revision
    if target == TrialTarget.CANDIDATE:
        if deployment.candidate_revision is None:
            raise Conflict(f"{deployment} has no candidate.", code="no_candidate")
        revision = deployment.candidate_revision
    return _to_revision(revision, request)


def needs_key(deployment: Deployment) -> bool:
    """Whether the gateway asks callers for keys or tokens. Without one the stable revision is asked directly."""
    return not deployments.access_of(deployment).opens_to_everyone


def _through_gateway(
    deployment: Deployment, stable: Revision, request: TrialRequest
) -> TrialResponse:
    version_id = stable.version_id if deployment.candidate_revision is None else None
    header = deployments.access_of(deployment).key_header
    own = {header: request.key} if header and request.key else {}
    return _post(url_of(deployment, stable), request, version_id, own)


def post(url: str, body: str, *, version_id: int | None) -> TrialResponse:
    """Post to any address behind a gateway. Raises Invalid and Unavailable like `send`."""
    return _post(url, _check(TrialRequest(body)), version_id)


def _post(
    url: str,
    request: TrialRequest,
    version_id: int | None,
    own_headers: Mapping[str, str] | None = None,
) -> TrialResponse:
    try:
        if request.binary or own_headers:
            headers = {**request.headers, **(own_headers or {})}
            answer = inference.post(url, request.content, headers)
        else:
            answer = inference.post_json(url, request.content)
    except inference.GatewayUnreachable as error:
        raise Unavailable(
            f"The gateway did not respond: {error}. Check the timeline for the state of the pods."
        ) from error
    return TrialResponse(
        version_id=version_id,
        status=answer.status,
        text=_readable(answer.body),
        size_bytes=len(answer.body),
        is_cut=answer.is_cut,
        milliseconds=answer.milliseconds,
    )


def _to_revision(revision: Revision, request: TrialRequest) -> TrialResponse:
    started = time.perf_counter()
    call = call_of(revision)
    try:
        answer = pod_inference.send(
            revision, call.path, request.content, port=call.port, headers=request.headers
        )
    except NotAnswered as error:
        raise Unavailable(
            f"r{revision.number} did not respond: {error}. Check the timeline for the state of "
            "its pods."
        ) from error
    return TrialResponse(
        version_id=revision.version_id,
        status=answer.status,
        text=_readable(answer.body),
        size_bytes=len(answer.body),
        is_cut=answer.is_cut,
        milliseconds=(time.perf_counter() - started) * 1000,
    )


def _check(request: TrialRequest) -> TrialRequest:
    """Return the request if it is a JSON object within the limits. Raises Invalid."""
    size = len(request.body.encode(errors="replace"))
    if size > MAX_REQUEST_BYTES:
        raise Invalid(
            f"The request has {size:,} bytes; the limit here is {MAX_REQUEST_BYTES:,}. Send "
            "larger requests from your own code.",
            fields={"body": "too large"},
        )
    require_room(len(request.binary))
    if request.key and not _KEY.fullmatch(request.key):
        raise Invalid("This is not a key.", fields={"key": "not a key"})
    try:
        value = documents.read_json(request.body, _BODY)
    except documents.UnreadableDocument as error:
        location = f"{error.place}: " if error.place else ""
        raise Invalid(f"{location}{error.message}", fields={"body": "fix the JSON"}) from error
    if not isinstance(value, dict):
        raise Invalid("Send a JSON object.", fields={"body": "begin with {"})
    return request


def _readable(body: bytes) -> str:
    """Return indented JSON with each list of numbers on one line, or the text unchanged."""
    text = body.decode(errors="replace")
    try:
        lines = json.dumps(json.loads(text), indent=2)
    except (ValueError, RecursionError):
        return text
    return _FLAT_LIST.sub(lambda match: _NEWLINE.sub(" ", match.group(0)), lines)
