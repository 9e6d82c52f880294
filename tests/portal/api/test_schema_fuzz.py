"""Requests made up from the OpenAPI document, against the real WSGI application and database.

Whatever is sent, the answer is one that the document promises: its status, type and shape.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client

from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db


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
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_answer_is_one_that_the_document_promises(full_world: FullWorld, mode: str) -> None:
    from tests.portal.api import made_up_requests

    # A session: no token may send every request.
    browser = Client()
    browser.force_login(full_world.world.admin)
    session, token = browser.cookies["sessionid"].value, "a" * 32
    headers = {"Cookie": f"sessionid={session}; csrftoken={token}", "X-CSRFToken": token}
    failures = made_up_requests.list_failures(mode, full_world, headers)

    assert not failures, "\n".join(dict.fromkeys(failures))
