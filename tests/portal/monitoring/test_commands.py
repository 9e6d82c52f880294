"""The commands that print rules and dashboards."""

from __future__ import annotations

import io
import json

import pytest
import yaml
from django.core.management import CommandError, call_command

from deployments.models import Deployment
from deployments.states import TargetMetric
from fleet.models import Cluster
from tests.deployments.targets.traffic import set_target
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]


def _run(*arguments: str) -> tuple[str, str]:
    out, errors = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=out, stderr=errors)
    return out.getvalue(), errors.getvalue()


def test_a_manifest_with_the_labels_by_which_it_is_selected() -> None:
    out, _ = _run("prometheus_rules", "--namespace", "metrics", "--label", "release=prometheus")

    made = yaml.safe_load(out)
    assert made["kind"] == "PrometheusRule"
    assert made["metadata"] == {
        "name": "slipway",
        "namespace": "metrics",
        "labels": {"app.kubernetes.io/managed-by": "slipway", "release": "prometheus"},
    }
    names = [group["name"] for group in made["spec"]["groups"]]
    assert names == ["slipway-triton", "slipway-vllm", "slipway-gpus"]


def test_a_file_has_the_rules_of_the_manifest() -> None:
    file, _ = _run("prometheus_rules", "--format", "file")
    manifest, _ = _run("prometheus_rules")

    assert yaml.safe_load(file) == yaml.safe_load(manifest)["spec"]


def test_the_targets_of_a_cluster(world: World) -> None:
    deployment = world.serving()
    set_target(world, deployment, objective="99.5")
    set_target(world, deployment, TargetMetric.P95, ms=200)
    cluster = Cluster.objects.get(pk=world.cluster_id)

    out, errors = _run("prometheus_rules", "--format", "file", "--cluster", cluster.name)

    (group,) = [g for g in yaml.safe_load(out)["groups"] if g["name"] == "slipway-targets"]
    assert [(r["labels"]["burn_rate"], r["labels"]["target"]) for r in group["rules"]] == [
        ("14.4", "availability"),
        ("6", "availability"),
    ]
    first = group["rules"][0]
    assert first["labels"]["namespace"] == deployment.namespace
    assert ">= 0.072 and" in first["expr"]
    assert errors == (
        "No rule for Latency (p95) of vision/detector: a summary counts no requests, so its rate needs the portal's"
        " readings.\n"
    )


def test_a_stopped_deployment_has_no_rules(world: World) -> None:
    deployment = world.serving()
    set_target(world, deployment)
    Deployment.objects.update(is_stopped=True)
    cluster = Cluster.objects.get(pk=world.cluster_id)

    out, errors = _run("prometheus_rules", "--format", "file", "--cluster", cluster.name)

    assert "SlipwayTargetBurning" not in out
    assert errors == ""


def test_a_cluster_that_is_not_there_is_refused(world: World) -> None:
    with pytest.raises(CommandError, match="There is no cluster moon"):
        _run("prometheus_rules", "--cluster", "moon")


@pytest.mark.parametrize("text", ["release", "=prometheus"])
def test_a_label_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="key=value"):
        _run("prometheus_rules", "--label", text)


def test_the_rules_of_the_portal_are_printed_alone() -> None:
    out, _ = _run("prometheus_rules", "--portal", "--format", "file")

    assert [group["name"] for group in yaml.safe_load(out)["groups"]] == ["slipway-portal"]


def test_rules_of_the_portal_are_not_those_of_a_cluster() -> None:
    with pytest.raises(CommandError, match="not allowed with argument"):
        _run("prometheus_rules", "--portal", "--cluster", "prod")


@pytest.mark.parametrize("name", ["gpus", "portal", "serving"])
def test_a_dashboard_is_json(name: str) -> None:
    out, _ = _run("grafana_dashboard", name)

    assert json.loads(out)["uid"] == f"slipway-{name}"
