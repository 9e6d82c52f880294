"""Try a deployment: send one request, bounded in time and size. It goes through the gateway like
any client's, or to one revision directly, which also reaches a candidate without traffic.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from deployments.models import Deployment, Revision
from deployments.registry.domain import signatures
from deployments.serving.domain import inference_call, request_inputs, shown_answer
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

MAX_REQUEST_BYTES = 2_000_000
# Input of a model may contain NUL; the request is not stored.
_BODY = Bounds(may_hold_nul=True)
_FLAT_LIST = re.compile(r"\[\n[^\[\]{}]*\]")
_NEWLINE = re.compile(r"\n\s*")


class TrialTarget(StrEnum):
    GATEWAY = "gateway"
    STABLE = "stable"
    CANDIDATE = "candidate"


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
    return request_inputs.describe_inputs(signatures.from_json(revision.version.signature))


def build_body(inputs: Sequence[RequestInput], texts: Sequence[InputText]) -> str:
    """Build the request from what was entered for each input. Raises Invalid."""
    try:
        body = request_inputs.build_body(inputs, texts)
    except Rejected as error:
        raise Invalid(error.message, fields=error.fields) from error
    return json.dumps(body, ensure_ascii=False)


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
    deployment: Deployment, trial: TrialResponse, target: TrialTarget
) -> ShownAnswer | None:
    """Describe the answer, with the names of classes where the version that answered is certain to have them. None
    for an answer in another protocol, or one that is cut.
    """
    return shown_answer.describe_answer(trial.text, _class_names(deployment, target))


def _class_names(deployment: Deployment, target: TrialTarget) -> tuple[str, ...]:
    stable, candidate = deployment.stable_revision, deployment.candidate_revision
    reached = {TrialTarget.STABLE: (stable,), TrialTarget.CANDIDATE: (candidate,)}
    revisions = reached.get(target, (stable,) if needs_key(deployment) else (stable, candidate))
    names = {call_of(revision).class_names for revision in revisions if revision is not None}
    return names.pop() if len(names) == 1 else ()


def send(
    *, actor: Actor, deployment_id: int, body: str, target: TrialTarget = TrialTarget.GATEWAY
) -> TrialResponse:
    """Send a request to a deployment. Raises Invalid unless the body is a JSON object within the limit,
    Conflict without a revision to send it to, Unavailable without a response.
    """
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.VIEW, deployment)
    if deployment.stable_revision is None or deployment.is_retired:
        raise Conflict(f"{deployment} has no serving revision.", code="not_serving")
    content = _checked(body)
    if target == TrialTarget.GATEWAY and not needs_key(deployment):
        return _through_gateway(deployment, deployment.stable_revision, content)
    revision = deployment.stable_revision
    if target == TrialTarget.CANDIDATE:
        if deployment.candidate_revision is None:
            raise Conflict(f"{deployment} has no candidate.", code="no_candidate")
        revision = deployment.candidate_revision
    return _to_revision(revision, content)


def needs_key(deployment: Deployment) -> bool:
    """Whether the gateway asks callers for keys or tokens. The portal has none, and asks the stable revision."""
    return not deployments.access_of(deployment).opens_to_everyone


def _through_gateway(deployment: Deployment, stable: Revision, content: bytes) -> TrialResponse:
    version_id = stable.version_id if deployment.candidate_revision is None else None
    return _post(url_of(deployment, stable), content, version_id)


def post(url: str, body: str, *, version_id: int | None) -> TrialResponse:
    """Post to any address behind a gateway. Raises Invalid and Unavailable like `send`."""
    return _post(url, _checked(body), version_id)


def _post(url: str, content: bytes, version_id: int | None) -> TrialResponse:
    try:
        answer = inference.post_json(url, content)
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


def _to_revision(revision: Revision, content: bytes) -> TrialResponse:
    started = time.perf_counter()
    call = call_of(revision)
    try:
        answer = pod_inference.send(revision, call.path, content, port=call.port)
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


def _checked(body: str) -> bytes:
    size = len(body.encode(errors="replace"))
    if size > MAX_REQUEST_BYTES:
        raise Invalid(
            f"The request has {size:,} bytes; the limit here is {MAX_REQUEST_BYTES:,}. Send "
            "larger requests from your own code.",
            fields={"body": "too large"},
        )
    try:
        value = documents.read_json(body, _BODY)
    except documents.UnreadableDocument as error:
        location = f"{error.place}: " if error.place else ""
        raise Invalid(f"{location}{error.message}", fields={"body": "fix the JSON"}) from error
    if not isinstance(value, dict):
        raise Invalid("Send a JSON object.", fields={"body": "begin with {"})
    return body.encode()


def _readable(body: bytes) -> str:
    """Return indented JSON with each list of numbers on one line, or the text unchanged."""
    text = body.decode(errors="replace")
    try:
        lines = json.dumps(json.loads(text), indent=2)
    except (ValueError, RecursionError):
        return text
    return _FLAT_LIST.sub(lambda match: _NEWLINE.sub(" ", match.group(0)), lines)
