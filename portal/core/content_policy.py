"""The header Content-Security-Policy. django-csp builds it anew for each answer, though it rarely differs."""

from __future__ import annotations

from functools import cache

from csp.constants import HEADER
from csp.middleware import CSPMiddleware
from csp.utils import build_policy
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase


class ContentPolicyMiddleware(CSPMiddleware):  # type: ignore[misc]  # no types
    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """The policy of the settings, built once, for an answer that neither changes it nor used a nonce."""
        is_changed = any(name.startswith("_csp") for name in vars(response))
        if is_changed or hasattr(request, "_csp_nonce") or settings.DEBUG:
            answer: HttpResponseBase = super().process_response(request, response)
            return answer
        response.headers.setdefault(HEADER, _policy())
        return response


@cache
def _policy() -> str:
    policy: str = build_policy()
    return policy
