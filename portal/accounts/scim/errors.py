"""Refusals of SCIM requests, as RFC 7644 (3.12) names them."""

from __future__ import annotations


class ScimError(Exception):
    """A request was refused, in the terms of SCIM. `scim_type` is a keyword of the RFC, or empty."""

    def __init__(self, status: int, detail: str, scim_type: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.scim_type = scim_type


def invalid_value(detail: str) -> ScimError:
    return ScimError(400, detail, "invalidValue")


def not_unique(detail: str) -> ScimError:
    return ScimError(409, detail, "uniqueness")


def not_found(kind: str, key: str) -> ScimError:
    return ScimError(404, f"There is no {kind} {key}.")
