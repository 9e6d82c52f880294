"""Change requests of deployments: reading them and deciding on them."""

from __future__ import annotations

from typing import Final

from django.urls import URLPattern
from rest_framework import serializers

from deployments.changes.api.serializers import ChangeSerializer, ListedChangeSerializer
from deployments.changes.api.views import ChangeAddresses
from deployments.models import Deployment
from deployments.states import ChangeState
from portal.api.base_serializer import Serializer, choice_of


class ChangeFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True)
    state = choice_of(ChangeState, default="", allow_blank=True)


urlpatterns: Final[list[URLPattern]] = ChangeAddresses(
    subject=Deployment,
    serializer=ChangeSerializer,
    listed=ListedChangeSerializer,
    filters=ChangeFilterSerializer,
    path="changes",
    name="change",
    tags=["change requests"],
).urls()
