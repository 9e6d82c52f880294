"""Causes as Kubernetes writes them."""

import json
from collections.abc import Iterable
from typing import Any

from slipway_localcluster.errors import Cause


def invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}", field)


def report_required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value{_suffix(detail)}", field)


def report_unsupported(field: str, value: Any, allowed: Iterable[str]) -> Cause:
    listed = ", ".join(f'"{item}"' for item in sorted(allowed))
    message = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return Cause("FieldValueNotSupported", message, field)


def duplicate(field: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def not_found(field: str, value: Any) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {_shown(value)}", field)


def forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _suffix(detail: str) -> str:
    return f": {detail}" if detail else ""
