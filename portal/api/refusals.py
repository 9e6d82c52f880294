"""The problem responses that most operations can give."""

from __future__ import annotations

from portal.api.views import PROBLEM

REFUSALS = {403: PROBLEM, 404: PROBLEM, 409: PROBLEM, 422: PROBLEM}
