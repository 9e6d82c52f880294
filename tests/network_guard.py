"""A wrapper for gateways that fails when they are used while a database transaction is open.

Only sound in tests that themselves run outside a transaction: `django_db(transaction=True)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection


class CalledInTransaction(AssertionError):
    """Row locks would last as long as another system takes to respond."""


def refuse_inside_transaction(what: str) -> None:
    if connection.in_atomic_block:
        raise CalledInTransaction(f"{what} was called inside a transaction")


def guarded(function: Callable[..., Any], calls: list[str], name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        refuse_inside_transaction(name)
        calls.append(name)
        return function(*args, **options)

    return call


class Guarded:
    """Every method of `gateway`, refused inside a transaction and remembered in `calls`."""

    def __init__(self, gateway: Any, calls: list[str]) -> None:
        self._gateway = gateway
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._gateway, name)
        return guarded(attribute, self._calls, name) if callable(attribute) else attribute
