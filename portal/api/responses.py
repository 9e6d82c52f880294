"""The problem responses that operations list in the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse

# Its body is added by portal.api.schema.
PROBLEM = OpenApiResponse(None, "A problem, with a stable code")
REFUSALS = {403: PROBLEM, 404: PROBLEM, 409: PROBLEM, 422: PROBLEM}
