"""Answers: how their renderer is chosen, and the problem responses that operations list in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

# Its body is added by portal.api.openapi.schema.
PROBLEM = OpenApiResponse(None, "A problem, with a stable code")
REFUSALS = {403: PROBLEM, 404: PROBLEM, 409: PROBLEM, 422: PROBLEM}


class Negotiation(DefaultContentNegotiation):
    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        """Select the same renderer as the framework, without parsing the Accept header in the common cases."""
        offered = list(renderers)
        only = offered[0]
        accepted = request.META.get("HTTP_ACCEPT", "*/*")
        if len(offered) == 1 and format_suffix is None and accepted in ("*/*", only.media_type):
            return only, str(only.media_type)
        chosen: Any = super().select_renderer(request, offered, format_suffix)
        renderer, media_type = chosen
        return renderer, media_type
