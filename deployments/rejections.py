"""The domain's Rejected as the Invalid that pages and the API show."""

from __future__ import annotations

from deployments.errors import Rejected
from portal.core.errors import Invalid


def as_invalid(error: Rejected) -> Invalid:
    return Invalid(error.message, fields=error.fields)
