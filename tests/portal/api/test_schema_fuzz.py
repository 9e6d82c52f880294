"""Requests made up from the OpenAPI document, against the real WSGI application and database.

Whatever is sent, the answer is one that the document promises: its status, type and shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi import checks as openapi_checks

from tests.portal import api_document
from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db
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


def failures_of(
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


@pytest.fixture
def _open_connection() -> Iterator[None]:
    """The real application closes stale connections around each request; the test's transaction
    lives in this one.
    """
    signals = [request_started, request_finished]
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.usefixtures("_open_connection")
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_one_that_the_document_promises(
    full_world: FullWorld, mode: GenerationMode
) -> None:
    # A session: no token may send every request.
    browser = Client()
    browser.force_login(full_world.world.admin)
    session, token = browser.cookies["sessionid"].value, "a" * 32
    headers = {"Cookie": f"sessionid={session}; csrftoken={token}", "X-CSRFToken": token}
    failures = [
        failure
        for operation in operations()
        for failure in failures_of(operation, mode, full_world, headers)
    ]

    assert not failures, "\n".join(dict.fromkeys(failures))
