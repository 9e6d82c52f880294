"""Made up for a test, which puts it into a copy of the product: callers with a key in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.access.domain.callers import Callers
from deployments.access.domain.headers import CALLER_HEADER
from deployments.access.domain.kind import AccessKind


class UrlKeys(AccessKind):
    name = "url-keys"
    label = "Callers with a key in the URL"
    noun = "Keys in the URL"
    description = "Only callers with a key in the URL get answers."
    requirement = "Callers need a key in the URL."
    option = "caller-keys"
    fix = "Set {path} open, or ask a platform admin for a gateway that reads URLs."
    creation_help = "Made up for a test."
    curl_arguments = "--url-query key=$KEY "

    def security(self, callers: Callers) -> Mapping[str, Any]:
        return {
            "apiKeyAuth": {
                "credentialRefs": [{"name": callers.secret}],
                "extractFrom": [{"params": ["key"]}],
                "forwardClientIDHeader": CALLER_HEADER,
                "sanitize": True,
            }
        }


KIND: Final = UrlKeys()
