"""Request bodies as drafts, and the response to a new request."""

from __future__ import annotations

from typing import Any

from rest_framework import status
from rest_framework.response import Response

from deployments import rejections
from deployments.changes.api.serializers import ChangeSerializer
from deployments.changes.selectors import changes as change_selectors
from deployments.models import ChangeRequest
from deployments.preflight.services.preflight import DeployDraft
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import Environment
from portal.accounts.models import User


def spec_of(data: dict[str, Any]) -> ServingSpec:
    with rejections.as_invalid("spec."):
        return ServingSpec.from_json(data)


def draft_of(body: dict[str, Any]) -> DeployDraft:
    return DeployDraft(
        version_id=body["version_id"],
        cluster_id=body["cluster_id"],
        name=body["name"],
        spec=spec_of(body["spec"]),
        environment=Environment(body["environment"]),
    )


def respond_created(actor: User, change: ChangeRequest) -> Response:
    fresh = change_selectors.get_visible(actor=actor, change_id=change.pk)
    return Response(ChangeSerializer(fresh).data, status=status.HTTP_201_CREATED)
