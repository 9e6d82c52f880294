"""The command `slipway` on the real application: output and exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deployments.alerts.domain.kinds import queue_depth
from deployments.models import ChangeRequest, Rollout
from portal.accounts.models import User
from slipway_client.cli import calls, exit_codes
from slipway_client.cli.context import Context
from slipway_client.cli.main import main
from slipway_client.cli.rollouts import follow
from tests.accounts import make_team
from tests.client.terminal import Terminal, connect, run, sign_in
from tests.deployments import canaries
from tests.deployments.alerts import test_inbox as alerts
from tests.deployments.delivery.test_logs_by_rest import with_pod
from tests.deployments.world import World

__all__ = ["sign_in"]
ROOT = Path(__file__).resolve().parents[2]


def test_a_deployment_is_checked_requested_and_approved(
    world: World, sign_in: Callable[[User], str]
) -> None:
    sign_in(world.member)
    settings = ("--instance-type", "g5.xlarge", "--set", "memory=8Gi", "--set", "cpu=2", "--open")
    request = ("deploy", "vision/detector:1", *settings)

    checked = run([*request, "--check"])
    assert checked.code == 0
    assert "Cost per hour: $" in checked.out
    assert not ChangeRequest.objects.exists()
    requested = run([*request, "--comment", "first"])
    assert requested.code == 0
    change = ChangeRequest.objects.get()
    assert f"Change request {change.pk} (deploy of vision/detector) is submitted." in requested.out
    assert change.comment == "first"

    sign_in(world.lead)
    declined = run(["approve", str(change.pk)], Terminal("n\n"))
    assert (declined.code, ChangeRequest.objects.get().state) == (2, "submitted")
    assert (
        "Approve deploy of detector:1 as vision/detector for member, open to anyone who reaches the "
        "gateway?"
    ) in declined.err
    approved = run(["approve", str(change.pk), "--yes", "--json"])
    assert approved.json["approvals"][0]["user"] == "lead"
    world.work()
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(world.team.deployments.get())

    watched = run(["status", "vision/detector", "--watch"])
    assert watched.code == 0
    assert "vision/detector is ready" in watched.out
    assert "Stable: detector:1 (revision 1)" in watched.out
    everything = run(["status", "--json"])
    assert [row["name"] for row in everything.json] == ["detector"]


def test_a_refusal_has_its_exit_code_and_names_the_field(
    world: World, sign_in: Callable[[User], str]
) -> None:
    sign_in(world.member)
    request = ["deploy", "vision/detector:1", "--instance-type", "g5.xlarge"]

    refused = run([*request, "--set", "memory=lots"])
    as_json = run([*request, "--set", "memory=lots", "--json"])

    assert refused.code == 3
    assert "spec.memory" in refused.err
    assert (as_json.out, as_json.code) == ("", 3)
    assert list(json.loads(as_json.err)["fields"]) == ["spec.memory"]
    assert run(["status", "vision/nothing"]).code == 3
    assert run(["deploy", "vision/detector", "--set", "memory"]).code == 2
    assert run(["deploy", "vision/detector", "--cluster", "nowhere"]).code == 2
    assert not ChangeRequest.objects.exists()


def test_a_canary_is_promoted_by_the_evidence_that_was_shown(
    world: World, sign_in: Callable[[User], str]
) -> None:
    deployment = world.serving()
    sign_in(world.member)
    requested = run(
        ["canary", "vision/detector", "vision/detector:2", "--steps", "10:1m:100,50:0", "--json"]
    )
    assert requested.code == 0, requested.err
    assert [(step["weight"], step["soak_seconds"]) for step in requested.json["steps"]] == [
        (10, 60),
        (50, 0),
    ]
    world.approved(ChangeRequest.objects.get(pk=requested.json["id"]))
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    sign_in(world.lead)

    early = run(["promote", "vision/detector", "--yes"])
    assert early.code == 3
    canaries.send(world, "detector-r2", 1)
    world.reconcile_now(deployment)
    # The candidate's pod is warm by then.
    world.clock.move(125)
    canaries.send(world, "detector-r1", 900)
    canaries.send(world, "detector-r2", 100)
    world.reconcile_now(deployment)
    rollout = Rollout.objects.get()
    shown = run(["promote", "vision/detector"], Terminal("y\n"))

    assert shown.code == 0, shown.err
    assert "Promote detector:2 from 10% to 50%?" in shown.err
    assert Rollout.objects.get().step_index == rollout.step_index + 1
    aborted = run(["abort", "vision/detector", "--reason", "too slow"])
    assert aborted.code == 0
    assert Rollout.objects.get().phase in ("aborting", "aborted")


def test_watching_a_rollout_ends_with_it_and_says_how(
    world: World, sign_in: Callable[[User], str], short_streams: None
) -> None:
    deployment, rollout = canaries.start(world)
    sign_in(world.lead)
    assert run(["abort", "vision/detector"]).code == 0

    def go_on(_: float) -> None:
        world.clock.move(20)
        world.reconcile_now(deployment)

    out = io.StringIO()
    client = connect()
    client._connection.sleep = go_on
    code = follow(Context(is_json=False, connect=lambda: client, out=out), rollout.pk)

    assert code == 1
    assert f"Rollout {rollout.pk} of detector:2 is aborted" in out.getvalue()


def test_costs_models_and_versions_are_tables_or_json(
    world: World, sign_in: Callable[[User], str]
) -> None:
    sign_in(world.viewer)

    assert "vision/detector" in run(["models"]).out
    assert [row["number"] for row in run(["versions", "vision/detector", "--json"]).json] == [2, 1]
    assert "vision/detector:1 is ready" in run(["versions", "vision/detector:1"]).out
    assert "Total" in run(["cost", "--team", "vision"]).out
    assert run(["cost", "--json"]).json["total_amount"]
    assert run(["cost", "--start", "yesterday"]).code == 2


def test_alerts_are_listed_with_what_to_do(world: World, sign_in: Callable[[User], str]) -> None:
    opened = alerts.make(world, 1)
    ended = alerts.make(world, 2, ended_at=world.clock.at)
    alerts.make(world, 3, team=make_team(slug="audio"))
    sign_in(world.lead)

    listed = run(["alerts"])

    assert listed.code == 0
    assert "Queue of vision/detector1" in listed.out
    assert "detector2" not in listed.out
    assert f"{opened.pk}: {queue_depth.KIND.advice}" in " ".join(listed.err.split())
    numbers = [row["id"] for row in run(["alerts", "--state", "all", "--json"]).json]
    assert numbers == [ended.pk, opened.pk]
    assert run(["alerts", "--kind", "budget", "--json"]).json == []
    assert run(["alerts", "--kind", "lost"]).code == 3
    client = connect().alerts
    assert client.silence(opened.pk, hours=2, reason="known").state == "silenced"
    assert run(["alerts", "--json"]).json == []
    assert client.get(opened.pk).silence_reason == "known"
    assert client.unsilence(opened.pk).state == "open"


@pytest.mark.parametrize(
    ("shown", "lines", "added"),
    [
        ([], ["a", "b"], ["a", "b"]),
        (["a", "b"], ["a", "b", "c"], ["c"]),
        (["a", "b", "c"], ["b", "c", "d"], ["d"]),
        (["a", "b"], ["a", "b"], []),
        (["a", "b"], ["x"], ["x"]),
        (["a", "a", "a"], ["a", "a", "b"], ["b"]),
    ],
)
def test_a_followed_log_shows_each_line_once(
    shown: list[str], lines: list[str], added: list[str]
) -> None:
    assert calls.new_lines(shown, lines) == added


def test_a_log_without_a_pod_is_a_failure(world: World, sign_in: Callable[[User], str]) -> None:
    world.serving()
    sign_in(world.viewer)

    done = run(["logs", "vision/detector"])

    assert (done.code, done.err) == (1, "Error: vision/detector has no pod.\n")


def test_a_log_is_followed_until_ctrl_c(world: World, sign_in: Callable[[User], str]) -> None:
    with_pod(world)
    sign_in(world.viewer)
    once = run(["logs", "vision/detector", "--json"])

    def write_more(_: float) -> None:
        if "late" in world.cluster.logs["detector-r1-0"]:
            raise KeyboardInterrupt
        world.cluster.logs["detector-r1-0"] += "late\n"

    out, err = io.StringIO(), io.StringIO()
    code = main(
        ["logs", "-f", "vision/detector"],
        lambda is_json: Context(
            is_json=is_json, connect=connect, out=out, err=err, sleep=write_more
        ),
    )

    assert once.json["lines"] == ["model loaded", "serving"]
    assert code == 130
    assert out.getvalue() == "model loaded\nserving\nlate\n"
    assert "Pod detector-r1-0" in err.getvalue()


@pytest.mark.parametrize("inputs", ["[1, 2]", "{", "@nowhere.json"])
def test_inputs_that_are_no_object_are_refused_before_anything_is_sent(inputs: str) -> None:
    assert run(["call", "vision/detector", inputs]).code == 2


def test_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])

    help_text = capsys.readouterr().out
    readme = (ROOT / "client" / "README.md").read_text()
    for code, meaning in exit_codes.MEANINGS.items():
        assert f"  {code:>3}  {meaning}" in help_text
        assert f"| {code} | {meaning} |" in readme
