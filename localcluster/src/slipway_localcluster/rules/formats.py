"""Names, ports, labels and quantities: their formats, and rules on single values."""

import base64
import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

from kubernetes.utils import parse_quantity

from slipway_localcluster.errors import Cause
from slipway_localcluster.rules.causes import (
    forbidden,
    invalid,
    report_required,
    report_unsupported,
)

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?")
_DATE_TIME = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
)
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ENVIRONMENT_NAME = re.compile(r"[ -<>-~]+")
_CONTENT_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_LARGEST_PORT = 65535
_WITH_VALUES, _WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")
PROTOCOLS = ("TCP", "UDP", "SCTP")


def is_label(value: str) -> bool:
    return bool(LABEL.fullmatch(value)) and len(value) <= 63


def is_subdomain(value: str) -> bool:
    return bool(SUBDOMAIN.fullmatch(value)) and len(value) <= 253


def is_qualified_name(value: str) -> bool:
    """Return whether the value is a qualified name, like keys of labels and annotations, and names of resources."""
    prefix, slash, name = value.rpartition("/")
    return bool(LABEL_NAME.fullmatch(name)) and (not slash or is_subdomain(prefix))


def is_port_name(value: str) -> bool:
    return bool(_PORT_NAME.fullmatch(value))


def is_environment_name(value: str) -> bool:
    return bool(_ENVIRONMENT_NAME.fullmatch(value))


def is_content_key(value: str) -> bool:
    """Return whether the value is a valid key of a ConfigMap or Secret."""
    return bool(_CONTENT_KEY.fullmatch(value)) and value not in (".", "..")


def is_date_time(value: Any) -> bool:
    """Whether the value is a time as RFC 3339 writes it."""
    return bool(_DATE_TIME.fullmatch(str(value)))


def is_quantity(value: Any) -> bool:
    return not isinstance(value, bool) and bool(QUANTITY.fullmatch(str(value)))


def amount_of(quantity: Any) -> Decimal:
    amount: Decimal = parse_quantity(quantity)
    return amount


def find_name_faults(field: str, name: Any) -> Iterator[Cause]:
    """Find the faults of a part's name, such as a container's: it is required, and an RFC 1123 label."""
    if not name:
        yield report_required(field)
    elif not is_label(name):
        yield invalid(field, name, f"a lowercase RFC 1123 label (regex '{LABEL.pattern}')")


def find_port_faults(field: str, port: Any) -> Iterator[Cause]:
    """Find the faults of a port: a number, or the name of a container's port."""
    if isinstance(port, str):
        if not is_port_name(port):
            yield invalid(field, port, "must be an IANA service name of at most 15 characters")
    elif not isinstance(port, int) or not 0 < port <= _LARGEST_PORT:
        yield invalid(field, port, f"must be between 1 and {_LARGEST_PORT}, inclusive")


def find_number_faults(field: str, value: int | None, *, least: int = 0) -> Iterator[Cause]:
    if value is not None and value < least:
        yield invalid(field, value, f"must be greater than or equal to {least}")


def find_choice_faults(field: str, value: Any, allowed: Collection[str]) -> Iterator[Cause]:
    """Find the faults of a choice. An absent value has a default."""
    if value is not None and value not in allowed:
        yield report_unsupported(field, value, allowed)


def find_label_faults(field: str, labels: Mapping[str, str] | None) -> Iterator[Cause]:
    for key, value in (labels or {}).items():
        if not is_qualified_name(key):
            yield invalid(field, key, "must be a qualified name")
        if not LABEL_VALUE.fullmatch(value):
            yield invalid(field, value, f"a valid label value (regex '{LABEL_VALUE.pattern}')")


def find_selector_faults(path: str, selector: Mapping[str, Any] | None) -> Iterator[Cause]:
    selector = selector or {}
    yield from find_label_faults(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from find_expression_faults(f"{path}.matchExpressions[{index}]", expression)


def find_expression_faults(
    path: str, expression: Mapping[str, Any], comparisons: Collection[str] = ()
) -> Iterator[Cause]:
    """Find the faults of an expression. `comparisons` are operators with one number, which node selectors have too."""
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator in _WITH_VALUES and not values:
        yield report_required(
            f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"
        )
    elif operator in _WITHOUT_VALUES and values:
        yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists'")
    elif operator in comparisons and len(values) != 1:
        yield report_required(f"{path}.values", "must be specified single value")
    elif operator not in (*_WITH_VALUES, *_WITHOUT_VALUES, *comparisons):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    if not is_qualified_name(expression.get("key") or ""):
        yield invalid(f"{path}.key", expression.get("key", ""), "must be a qualified name")


def is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return True
