"""Sends requests that are made up from the OpenAPI document. Import where it is used: Schemathesis takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi import checks as openapi_checks

from tests.portal import api_document
from tests.portal.api.full_world import FullWorld

EXAMPLES = 2
CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]
# The local S3 server runs in this process, so an answer of 503 is a defect too.


def operations() -> Iterator[Any]:
    document = api_document.read()
    schema = schemathesis.openapi.from_dict(document)
    schema.app = WSGIHandler()
    for result in schema.get_all_operations():
        yield result.ok()


def name_what_exists(case: Case[Any], names: dict[str, Any]) -> None:
    """Made-up ids meet nothing; with real ones a request gets further than 404."""
    for name in case.path_parameters:
        if name in names:
            case.path_parameters[name] = names[name]
    if isinstance(case.body, dict):
        for name in case.body.keys() & {"version_id", "cluster_id", "team"}:
            case.body[name] = names[name]


def list_failures(mode: str, full: FullWorld, headers: dict[str, str]) -> list[str]:
    """List the failures over all operations; `mode` is "positive" (what the document allows) or "negative"."""
    return [
        failure
        for operation in operations()
        for failure in _list_failures(operation, GenerationMode(mode), full, headers)
    ]


def _list_failures(
    operation: Any, mode: GenerationMode, full: FullWorld, headers: dict[str, str]
) -> list[str]:
    failures: list[str] = []

    @seed(7)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), is_named=st.booleans())
    def send(case: Case[Any], is_named: bool) -> None:
        if is_named:
            name_what_exists(case, full.names)
        with transaction.atomic():
            try:
                case.call_and_validate(checks=CHECKS, headers=headers)
            except (Failure, FailureGroup) as error:
                failures.append(f"{operation.label} {mode.value}: {describe(error)}")
            transaction.set_rollback(True)

    send()
    return failures


def describe(error: Failure | FailureGroup) -> str:
    parts = error.exceptions if isinstance(error, FailureGroup) else [error]
    return "; ".join(f"{part.title}: {part.message}"[:600] for part in parts)
