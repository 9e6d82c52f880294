"""One trace from the click to what is on the cluster, at a real receiver of OTLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.changes.services import decisions
from deployments.models import ChangeRequest, Deployment
from fleet.kube.domain.errors import Unreachable
from portal.core import tracing
from tests.deployments.world import World
from tests.fixtures.otlp import ReceivedSpan, Receiver, otlp

__all__ = ["otlp"]


def _post(world: World, name: str = "detector") -> ChangeRequest:
    api = APIClient()
    api.force_authenticate(world.member)
    body = {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "name": name,
        "spec": {
            "engine": "kserve-triton",
            "instance_type": "g5.xlarge",
            "network": {"access": "open"},
        },
    }
    # A client's own context is not joined.
    theirs = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    response = api.post("/api/v1/deployments", body, format="json", headers=theirs)
    assert response.status_code == 201, response.data
    return ChangeRequest.objects.get(pk=response.data["id"])


def _approve(world: World, change: ChangeRequest) -> None:
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)


def _of(spans: list[ReceivedSpan], change: ChangeRequest) -> list[ReceivedSpan]:
    return [span for span in spans if span.trace == change.trace.split("-")[1]]


def test_a_request_is_followed_to_the_cluster(
    world: World,
    otlp: Receiver,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    change = _post(world)
    with django_capture_on_commit_callbacks(execute=True):
        _approve(world, change)
        world.work()
        deployment = Deployment.objects.get()
        assert deployment.trace == change.trace
        world.cluster.make_ready("detector-r1")
        world.reconcile_now(deployment)

    spans = otlp.spans()

    of_change = _of(spans, change)
    names = [span.name for span in of_change]
    assert names[0] == "POST v1:deployments"
    assert sorted(names[1:]) == [
        "apply change request",
        "change request applying",
        "change request approved",
        "change request done",
        "push revision",
        "push route",
    ]
    (root,) = [span for span in of_change if span.name == "POST v1:deployments"]
    assert root.parent == ""
    assert root.trace != "a" * 32
    assert {span.parent for span in of_change[1:]} == {root.id}
    assert root.attributes == {
        "http.request.method": "POST",
        "http.route": "api/v1/deployments",
        "http.response.status_code": 201,
    }
    (push,) = [span for span in of_change if span.name == "push revision"]
    assert push.attributes == {
        "slipway.deployment": "vision/detector",
        "slipway.cluster": "eks-test",
    }
    assert {span.service for span in spans} == {"slipway"}
    # What is done to it later belongs to another change, or to nobody's.
    deployment.refresh_from_db()
    assert deployment.trace == ""


def test_two_changes_in_one_pass_have_traces_of_their_own(world: World, otlp: Receiver) -> None:
    first, second = _post(world, "one"), _post(world, "two")
    assert first.trace.split("-")[1] != second.trace.split("-")[1]
    for change in (first, second):
        _approve(world, change)
    world.work()

    spans = otlp.spans()

    for change, name in ((first, "vision/one"), (second, "vision/two")):
        (push,) = [span for span in _of(spans, change) if span.name == "push revision"]
        assert push.attributes["slipway.deployment"] == name


def test_a_receiver_that_refuses_changes_nothing(world: World, otlp: Receiver) -> None:
    otlp.status = 400

    change = _post(world)
    _approve(world, change)
    world.work()

    assert otlp.spans() == []
    assert otlp.headers != []
    assert Deployment.objects.get().stable_revision is not None


def test_a_failed_request_ends_its_span(world: World, otlp: Receiver) -> None:
    api = APIClient()
    api.force_authenticate(world.viewer)
    assert api.post("/api/v1/deployments", {}, format="json").status_code == 422
    api.get("/api/v1/deployments")

    (span,) = otlp.spans()

    assert (span.name, span.attributes["http.response.status_code"]) == ("POST v1:deployments", 422)
    assert not ChangeRequest.objects.exists()


def test_an_effect_that_fails_is_a_span_too(world: World, otlp: Receiver) -> None:
    parent = f"00-{'1' * 32}-{'2' * 16}-01"
    with (
        pytest.raises(Unreachable),
        tracing.span_for_each("push", [(parent, {"n": 1}), ("", {"n": 2})]),
    ):
        raise Unreachable("away")

    (span,) = otlp.spans()

    assert (span.trace, span.parent, span.attributes) == ("1" * 32, "2" * 16, {"n": 1})


def test_a_parent_that_cannot_be_read_begins_a_trace(otlp: Receiver) -> None:
    tracing.note("x", parent="not a traceparent")

    (span,) = otlp.spans()

    assert span.parent == ""


def test_headers_are_sent_with_what_is_exported(otlp: Receiver, settings: Any) -> None:
    settings.SLIPWAY_OTLP_HEADERS = {"x-key": "secret"}
    with tracing.span("one"):
        pass
    otlp.spans()

    assert otlp.headers[0]["x-key"] == "secret"


def test_without_a_receiver_nothing_is_stored(world: World) -> None:
    assert tracing.current() == ""
    change = _post(world)
    _approve(world, change)
    world.work()

    assert change.trace == ""
    assert Deployment.objects.get().trace == ""
