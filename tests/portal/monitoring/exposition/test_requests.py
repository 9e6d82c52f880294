"""Requests by view, and labels that no client can multiply."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from portal.monitoring.exposition import collectors
from tests.portal.monitoring.exposition.scrape import Samples, get, scrape, value
from tests.portal.monitoring.promtool import PROMTOOL, needs_promtool

_TOTAL = "slipway_http_requests_total"


def _increase(before: Samples, after: Samples, name: str, **labels: str) -> float:
    return (value(after, name, **labels) or 0) - (value(before, name, **labels) or 0)


def test_each_request_is_counted_by_view_and_status(offered: Any) -> None:
    before = scrape()
    for _ in range(3):
        Client().get("/sign-in")
    Client().get("/healthz")
    Client().get("/api/v1/deployments")

    after = scrape()

    counted = {
        (view, status): _increase(before, after, _TOTAL, view=view, method="GET", status=status)
        for view, status in [
            ("sign-in", "200"),
            ("healthz", "200"),
            ("v1:deployments", "401"),
            ("sign-in", "500"),
        ]
    }
    assert counted == {
        ("sign-in", "200"): 3,
        ("healthz", "200"): 1,
        ("v1:deployments", "401"): 1,
        ("sign-in", "500"): 0,
    }
    seconds = "slipway_http_request_duration_seconds"
    assert _increase(before, after, f"{seconds}_count", view="sign-in") == 3
    assert _increase(before, after, f"{seconds}_bucket", view="sign-in", le="+Inf") == 3
    assert _increase(before, after, f"{seconds}_sum", view="sign-in") > 0


def test_a_client_cannot_make_series(offered: Any) -> None:
    before = scrape()
    for n in range(20):
        Client().get(f"/no/such/page/{n}")
        Client().get(f"/static/none-{n}.js")
        Client().generic(f"VERB{n}", "/sign-in")

    after = scrape()

    fresh = {labels for (name, labels) in after.keys() - before.keys() if name == _TOTAL}
    assert len(fresh) <= 3
    assert _increase(before, after, _TOTAL, view="unmatched", method="GET", status="404") == 20
    assert _increase(before, after, _TOTAL, view="static", method="GET", status="404") == 20
    assert _increase(before, after, _TOTAL, view="sign-in", method="other", status="405") == 20


def test_a_failing_view_is_a_server_error(offered: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = scrape()

    def fail(*_args: Any) -> Iterator[Any]:
        raise ValueError

    monkeypatch.setattr("portal.ui.sign_in.SignIn.get", fail)
    client = Client(raise_request_exception=False)
    assert client.get("/sign-in").status_code == 500

    increase = _increase(before, scrape(), _TOTAL, view="sign-in", method="GET", status="500")
    assert increase == 1


@needs_promtool
def test_prometheus_takes_the_whole_answer(offered: Any) -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"],
        input=get().content,
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_parts_have_names_of_their_own() -> None:
    assert list(collectors.PARTS) == [
        "queues",
        "rows",
        "requests",
        "clusters",
        "cluster-errors",
        "seals",
    ]
