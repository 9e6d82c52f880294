"""Try a deployment: one request that the portal sends, bounded in every way. Through the gateway,
as any client's, or to one revision itself, which also reaches a candidate without any traffic.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from deployments.domain import calls, signatures
from deployments.domain.calls import Call
from deployments.gateways import inference
from deployments.models import Deployment, Revision
from deployments.selectors import deployments
from deployments.services import revision_calls
from deployments.services.revision_calls import NotAnswered
from portal.accounts import policy
from portal.accounts.policy import Action, Actor
from portal.core.errors import Conflict, Invalid, Unavailable

MAX_REQUEST_BYTES = 2_000_000
_FLAT_LIST = re.compile(r"\[\n[^\[\]{}]*\]")
_NEWLINE = re.compile(r"\n\s*")


class Target(StrEnum):
    GATEWAY = "gateway"
    STABLE = "stable"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class Trial:
    """`version_id`: whose answer it is; through the gateway of two revisions that is not known."""

    version_id: int | None
    status: int
    text: str
    size_bytes: int
    is_cut: bool
    milliseconds: float

    @property
    def is_good(self) -> bool:
        return self.status < HTTPStatus.BAD_REQUEST

    @property
    def status_words(self) -> str:
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)


def call_of(revision: Revision) -> Call:
    version = revision.version
    return calls.call_of(
        engine=revision.spec["engine"],
        model=version.model.name,
        signature=signatures.from_json(version.signature),
    )


def url_of(deployment: Deployment, revision: Revision) -> str:
    return f"{deployments.url_of(deployment)}/{call_of(revision).path}"


def send(*, actor: Actor, deployment_id: int, body: str, target: Target = Target.GATEWAY) -> Trial:
    """Raises Invalid for what is no JSON object or too large, Unavailable without an answer."""
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.VIEW, deployment)
    if deployment.stable_revision is None or deployment.is_retired:
        raise Conflict(f"{deployment} serves nothing now.", code="not_serving")
    content = _checked(body)
    if target == Target.GATEWAY:
        return _through_gateway(deployment, deployment.stable_revision, content)
    revision = deployment.stable_revision
    if target == Target.CANDIDATE:
        if deployment.candidate_revision is None:
            raise Conflict(f"{deployment} has no candidate now.", code="no_candidate")
        revision = deployment.candidate_revision
    return _to_revision(revision, content)


def _through_gateway(deployment: Deployment, stable: Revision, content: bytes) -> Trial:
    version_id = stable.version_id if deployment.candidate_revision is None else None
    return _post(url_of(deployment, stable), content, version_id)


def post(url: str, body: str, *, version_id: int | None) -> Trial:
    """To any address behind a gateway. Raises Invalid and Unavailable as `send`."""
    return _post(url, _checked(body), version_id)


def _post(url: str, content: bytes, version_id: int | None) -> Trial:
    try:
        answer = inference.post_json(url, content)
    except inference.GatewayUnreachable as error:
        raise Unavailable(
            f"The gateway gave no answer: {error}. Look at the timeline for what the pods do."
        ) from error
    return Trial(
        version_id=version_id,
        status=answer.status,
        text=_readable(answer.body),
        size_bytes=len(answer.body),
        is_cut=answer.is_cut,
        milliseconds=answer.milliseconds,
    )


def _to_revision(revision: Revision, content: bytes) -> Trial:
    started = time.perf_counter()
    call = call_of(revision)
    try:
        answer = revision_calls.send(revision, call.path, content, port=call.port)
    except NotAnswered as error:
        raise Unavailable(
            f"r{revision.number} gave no answer: {error}. Look at the timeline for what its pods do."
        ) from error
    return Trial(
        version_id=revision.version_id,
        status=answer.status,
        text=_readable(answer.body),
        size_bytes=len(answer.body),
        is_cut=answer.is_cut,
        milliseconds=(time.perf_counter() - started) * 1000,
    )


def _checked(body: str) -> bytes:
    content = body.encode()
    if len(content) > MAX_REQUEST_BYTES:
        raise Invalid(
            f"The request has {len(content):,} bytes; from here at most {MAX_REQUEST_BYTES:,} "
            "are sent. Send it from your own code.",
            fields={"body": "too large"},
        )
    try:
        value = json.loads(content)
    except ValueError as error:
        raise Invalid(f"This is no JSON: {error}.", fields={"body": "mend the JSON"}) from error
    if not isinstance(value, dict):
        raise Invalid("Send a JSON object.", fields={"body": "begin with {"})
    return content


def _readable(body: bytes) -> str:
    """Indented JSON with each list of numbers on one line, or the text as it came."""
    text = body.decode(errors="replace")
    try:
        lines = json.dumps(json.loads(text), indent=2)
    except ValueError:
        return text
    return _FLAT_LIST.sub(lambda found: _NEWLINE.sub(" ", found.group(0)), lines)
