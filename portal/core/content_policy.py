"""The header Content-Security-Policy. django-csp builds it anew for each answer, though it rarely differs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

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
        response.headers.setdefault(HEADER, _policy_of(_Setting(settings.CONTENT_SECURITY_POLICY)))
        return response


class _Setting:
    """The setting as a key. Another value of it is another object, which is kept, so its id is its own."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Setting) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


@lru_cache(maxsize=1)
def _policy_of(_setting: _Setting) -> str:
    policy: str = build_policy()
    return policy
