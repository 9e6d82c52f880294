"""Every command of the guides of docs/, in its order, on the real application."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.changes.services import requests
from deployments.models import CallerKey, ChangeRequest, Deployment, ModelVersion, Rollout
from deployments.registry.gateways.object_store import S3Store
from fleet.models import FleetAction, Node
from portal.accounts import tokens
from portal.accounts.models import User
from portal.accounts.scopes import Scope
from slipway_client import inference
from tests.client import documents
from tests.client.conftest import PORTAL, portal_transport
from tests.client.terminal import Done, Terminal, run, sign_in
from tests.deployments import canaries, onnx_models
from tests.deployments import golden_requests as golden
from tests.deployments.callers.test_open_is_stated import with_keys
from tests.deployments.uploading import People
from tests.deployments.world import World
from tests.fleet.actions.conftest import Hands, admin, hands, lead, node
from tests.fleet.conftest import catalogue, cluster, detector, kube, vision

__all__ = [
    "admin",
    "catalogue",
    "cluster",
    "detector",
    "hands",
    "kube",
    "lead",
    "node",
    "sign_in",
    "vision",
]
_SCIENTIST, _LEAD, _API = "guide-data-scientist", "guide-team-lead", "guide-api"
_PLATFORM = "guide-platform-engineer"


class Reader:
    """Runs one command of a guide after another. A journey names each, so that none is left out."""

    def __init__(self, name: str) -> None:
        self._commands = iter(documents.commands_of(name, "slipway"))

    def next(self, *beginning: str, stdin: io.StringIO | None = None, **change: str) -> Done:
        arguments = [change.get(word, word) for word in next(self._commands)]
        assert tuple(arguments[: len(beginning)]) == beginning
        return run([word.replace(documents.PUBLIC, PORTAL) for word in arguments], stdin)

    def skip(self, *beginning: str) -> None:
        """Another test runs it."""
        arguments = next(self._commands)
        assert tuple(arguments[: len(beginning)]) == beginning

    def is_at_the_end(self) -> bool:
        return next(self._commands, None) is None


def token_of(user: User, *scopes: str) -> str:
    return tokens.create(actor=user, name="guide", scopes=list(scopes or Scope)).plain


def log_in(reader: Reader, user: User, *scopes: str) -> None:
    done = reader.next("login", stdin=io.StringIO(f"{token_of(user, *scopes)}\n"))
    assert done.code == 0, done.err


def approved(world: World, name: str) -> Deployment:
    """Approved and delivered, as while the guide waits."""
    world.approved(ChangeRequest.objects.latest("pk"))
    world.cluster.make_ready(f"{name}-r1")
    return world.reconcile_now(Deployment.objects.get(name=name))


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """A gateway that serves one key. The requests that it got."""
    got: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(request)
        if request.headers.get("x-api-key") != "key-from-your-lead":
            return httpx.Response(401, text="Client authentication failed.")
        output = {"name": "y", "datatype": "FP32", "shape": [1], "data": [2.0]}
        return httpx.Response(200, json={"outputs": [output]})

    transport = httpx.MockTransport(answer)
    monkeypatch.setattr(inference, "infer", partial(inference.infer, transport=transport))
    return got


def test_the_guide_for_data_scientists(
    world: World, answering: list[httpx.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_keys(world)
    golden_signature(world)
    guide = Reader(_SCIENTIST)

    log_in(guide, world.member, "upload", "request")
    assert "member" in guide.next("whoami").out
    guide.skip("push")
    assert "2" in guide.next("versions").out

    checked = guide.next("deploy", "vision/detector:1")
    assert (checked.code, ChangeRequest.objects.count()) == (0, 0), checked.out
    requested = guide.next("deploy", "vision/detector:1")
    assert "is submitted. Waiting for: a lead or platform admin." in requested.out
    approved(world, "detector-staging")
    assert "vision/detector-staging is ready" in guide.next("status").out

    exports = [line for line in documents.lines_of(_SCIENTIST) if line.startswith("export ")]
    assert exports == ["export SLIPWAY_CALLER_KEY=key-from-your-lead"]
    monkeypatch.setenv("SLIPWAY_CALLER_KEY", "key-from-your-lead")
    called = guide.next("call")
    assert called.json == {"y": [2.0]}, called.err
    assert answering[0].url.path == "/vision/detector-staging/v2/models/detector/infer"

    assert guide.next("promote-environment").code == 0
    assert "(deploy of vision/detector) is submitted" in guide.next("promote-environment").out
    deployment = approved(world, "detector")
    assert deployment.environment == "production"
    assert "vision/detector is ready" in guide.next("status").out

    canary = guide.next("canary")
    assert "(canary of vision/detector) is submitted" in canary.out, canary.err
    assert [step["weight"] for step in ChangeRequest.objects.latest("pk").steps] == [5, 50]
    world.approved(ChangeRequest.objects.latest("pk"))
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    assert "vision/detector" in guide.next("status").out
    log_in(guide, world.member, "decide")
    aborted = guide.next("abort")
    assert "aborting: the sorting line reports wrong parts" in aborted.out, aborted.err

    for name in ("logs", "cost", "alerts"):
        done = guide.next(name)
        assert done.code in (0, 1), done.err
    assert guide.is_at_the_end()


def test_the_upload_of_the_guide(
    people: People,
    s3_store: S3Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sign_in: Callable[[User], str],
) -> None:
    (command,) = [row for row in documents.commands_of(_SCIENTIST, "slipway") if row[0] == "push"]
    (tmp_path / "detector.onnx").write_bytes(onnx_models.large(megabytes=1))
    monkeypatch.chdir(tmp_path)
    sign_in(people.member)

    done = run([*command, "--no-wait", "--json"])

    row = ModelVersion.objects.get()
    assert done.code == 0, done.err
    assert (row.label, row.metadata["dataset_version"]) == ("detector:1", "2026-10")
    assert row.metadata["metrics"] == {"accuracy": 0.94}


def golden_signature(world: World) -> None:
    for version in (world.version1, world.version2):
        version.signature = {**golden.SIGNATURE, "inputs": [_INPUT]}
        version.save(update_fields=["signature"])


_INPUT = {"name": "x", "dtype": "FP32", "dims": [-1, 2]}


def test_the_guide_for_leads(world: World) -> None:
    with_keys(world)
    guide = Reader(_LEAD)
    at_once = [{"weight": weight, "soak_seconds": 0, "min_requests": 0} for weight in (10, 50)]
    deployment, _ = canaries.start(world, at_once)
    canaries.serve(world, deployment, 10)
    change = open_request(world)

    log_in(guide, world.lead, "request", "decide")
    assert "vision/detector" in guide.next("status").out
    decided = guide.next("approve", str(change.pk), stdin=Terminal("y\n"), **{"42": str(change.pk)})
    assert decided.code == 0, decided.err
    change.refresh_from_db()
    assert change.state == "approved"
    promoted = guide.next("promote", "vision/detector", stdin=Terminal("y\n"))
    assert promoted.code == 0, promoted.err
    aborted = guide.next("abort", "vision/detector")
    assert aborted.code == 0, aborted.err
    assert Rollout.objects.get().phase_reason == "latency doubled at 10%"

    by_deployment, by_model = guide.next("cost"), guide.next("cost")
    assert (by_deployment.code, by_model.code) == (0, 0), by_model.err
    assert guide.next("alerts").code == 0
    assert guide.is_at_the_end()


def test_the_guide_for_platform_engineers(
    node: Node, lead: User, admin: User, hands: Hands, sign_in: Callable[[User], str]
) -> None:
    """Its commands of `manage.py` are run by tests/portal/install/test_documents.py."""
    guide = Reader(_PLATFORM)
    sign_in(lead)
    assert "node-1" in guide.next("nodes").out
    requested = guide.next("node", "drain")
    assert requested.code == 0, requested.err
    action = FleetAction.objects.get()
    assert (action.kind, action.parameters["deadline_minutes"]) == ("drain", 30)
    assert "drain" in guide.next("fleet-actions").out
    number = str(action.pk)
    assert "is submitted" in guide.next("fleet-action", "show", stdin=None, **{"7": number}).out
    sign_in(admin)
    approved = guide.next("fleet-action", "approve", stdin=Terminal("y\n"), **{"7": number})
    assert approved.code == 0, approved.err
    assert "is approved" in approved.out

    shared, days = guide.next("cost"), guide.next("unusual-days")
    assert (shared.code, days.code) == (0, 0), shared.err
    assert guide.is_at_the_end()


def open_request(world: World) -> ChangeRequest:
    return requests.request_deploy(actor=world.member, draft=world.draft("second"))


def test_the_guide_to_the_api(world: World) -> None:
    """Each request of the guide by its method, headers and body; answers give the values of the next."""
    with_keys(world)
    lines = iter(documents.lines_of(_API))
    assert next(lines) == f"export SLIPWAY_URL={documents.PUBLIC}"
    assert next(lines) == "export SLIPWAY_TOKEN=slp_from-the-portal"
    values: dict[str, object] = {
        "SLIPWAY_URL": PORTAL,
        "SLIPWAY_TOKEN": token_of(world.member, "read", "request"),
        "LEAD_TOKEN": token_of(world.lead, "decide"),
        "VERSION": world.version1.pk,
        "CLUSTER": world.cluster_id,
    }

    with httpx.Client(transport=portal_transport()) as client:

        def ask(path: str) -> Any:
            line = documents.filled(next(lines), values)
            answer = send(client, shlex.split(line))
            assert answer.request.url.path == documents.filled(path, values)
            assert answer.is_success, answer.text
            return answer.json()

        assert ask("/api/v1/me")["username"] == "member"
        assert [row["name"] for row in ask("/api/v1/models")["results"]] == ["detector"]
        assert len(ask("/api/v1/models/vision/detector/versions")["results"]) == 2
        assert ask("/api/v1/clusters")
        assert ask("/api/v1/deployments/preflight")["can_submit"] is True
        assert not ChangeRequest.objects.exists()

        change = ask("/api/v1/deployments")
        assert (change["state"], change["access"]) == ("submitted", "keys")
        values |= {"CHANGE": change["id"], "DEPLOYMENT": change["deployment_id"]}
        values |= {"EVIDENCE": change["evidence_hash"]}
        assert ask("/api/v1/changes/$CHANGE")["opens_address"] is False
        assert ask("/api/v1/changes/$CHANGE/approve")["state"] == "approved"
        world.work()
        world.cluster.make_ready("detector-r1")
        world.reconcile_now(Deployment.objects.get())
        served = ask("/api/v1/deployments/$DEPLOYMENT")
        assert (served["state"], served["is_current"], served["team_url"]) == ("ready", True, "")

        made = ask("/api/v1/deployments/$DEPLOYMENT/callers")
        values |= {"KEY": CallerKey.objects.get().pk}
        rotated = ask("/api/v1/deployments/$DEPLOYMENT/callers/$KEY/rotate")
        assert len({made["key"], rotated["key"]}) == 2
        listed = json.dumps(ask("/api/v1/deployments/$DEPLOYMENT/callers"))
        assert made["key"] not in listed
        assert rotated["key"] not in listed
        assert "rows" in ask("/api/v1/costs")
    assert next(lines, None) is None


def send(client: httpx.Client, words: list[str]) -> httpx.Response:
    """What curl would send. Raises for an option that is not known here."""
    assert words[:2] == ["curl", "--fail-with-body"]
    headers: dict[str, str] = {}
    body: str | None = None
    urls = []
    rest: Iterator[str] = iter(words[2:])
    for word in rest:
        if word == "-H":
            name, _, value = next(rest).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(rest)
        else:
            assert word.startswith(PORTAL), word
            urls.append(word)
    (url,) = urls
    return client.request("GET" if body is None else "POST", url, headers=headers, content=body)


def test_the_guides_are_in_the_index() -> None:
    index = documents.text_of("README")

    for name in (_SCIENTIST, _LEAD, "guide-platform-engineer", _API):
        assert f"({name}.md)" in index
