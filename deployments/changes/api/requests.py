"""Request a change of a deployment, and run its checks without a request."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.changes.api.drafts import respond_created, spec_of
from deployments.changes.api.serializers import ChangeSerializer, NewChangeSerializer
from deployments.changes.services import drafts, requests
from deployments.changes.services.drafts import ChangeDraft
from deployments.plans.domain.rollout_plan import PlanKind
from deployments.preflight.api.serializers import ChangePreflightSerializer
from deployments.serving.api.serializers import TAGS
from deployments.states import ChangeKind
from portal.accounts.models import User
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import REFUSALS
from portal.core.errors import Invalid


class DeploymentChangesView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="request_change",
        tags=TAGS,
        request=NewChangeSerializer,
        responses={201: ChangeSerializer, **REFUSALS},
        description="Request a canary, a roll back, new replica limits, a stop, a start or a retirement.",
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        draft = _draft_of(actor, deployment_id, read_body(NewChangeSerializer, request))
        return respond_created(actor, requests.submit(actor=actor, draft=draft))


class ChangePreflightView(APIView):
    @extend_schema(
        operation_id="preflight_change",
        tags=TAGS,
        request=NewChangeSerializer,
        responses={200: ChangePreflightSerializer, **REFUSALS},
        description="The checks that the request of this change would carry, each with its fix, its "
        "cost and its manifests. An invalid request is refused in the same way. "
        "Nothing is written.",
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        draft = _draft_of(actor, deployment_id, read_body(NewChangeSerializer, request))
        checked = drafts.check(actor=actor, draft=draft)
        return Response(ChangePreflightSerializer(checked).data)


def _draft_of(actor: User, deployment_id: int, body: dict[str, Any]) -> ChangeDraft:
    comment = body["comment"]
    if body["kind"] == ChangeKind.RETIRE:
        return drafts.retire(actor=actor, deployment_id=deployment_id, comment=comment)
    if body["kind"] == ChangeKind.STOP:
        return drafts.stop(actor=actor, deployment_id=deployment_id, comment=comment)
    if body["kind"] == ChangeKind.START:
        return drafts.start(actor=actor, deployment_id=deployment_id, comment=comment)
    if body["kind"] == ChangeKind.SCALE:
        return drafts.scale(
            actor=actor,
            deployment_id=deployment_id,
            min_replicas=_needed(body, "min_replicas"),
            max_replicas=_needed(body, "max_replicas"),
            comment=comment,
        )
    if body["kind"] == ChangeKind.ROLL_BACK:
        return drafts.roll_back(
            actor=actor,
            deployment_id=deployment_id,
            revision_number=_needed(body, "revision_number"),
            comment=comment,
        )
    return drafts.canary(
        actor=actor,
        deployment_id=deployment_id,
        version_id=_needed(body, "version_id"),
        steps=[dict(step) for step in _steps_of(body)],
        plan=body.get("plan"),
        comment=comment,
        spec=spec_of(body["spec"]) if "spec" in body else None,
    )


def _steps_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of the request. Only blue/green needs none."""
    is_blue_green = body.get("plan", {}).get("kind") == PlanKind.BLUE_GREEN
    steps: list[dict[str, Any]] = body.get("steps", []) if is_blue_green else _needed(body, "steps")
    return steps


def _needed(body: dict[str, Any], name: str) -> Any:
    if name not in body:
        raise Invalid(f"{body['kind']} needs {name}.", fields={name: "required"})
    return body[name]
