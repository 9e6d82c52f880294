"""The Manifests tab: one row an object, one count, and who changed what on the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.delivery.domain.edits import Edit
from deployments.delivery.services import drift_decisions
from deployments.models import Deployment
from deployments.states import DriftPolicy
from fleet.kube.domain.errors import Unreachable
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.live_cluster import ISVC, Live, live, module_api
from tests.deployments.world import World
from tests.page import Part, page

__all__ = ["live", "module_api"]
PAGE = "/vision/deployments/detector/manifests"
WORKLOAD = ("InferenceService", "vision", "detector-r1")
SignIn = Callable[[User], Client]


def rows_by_object(shown: Part) -> dict[str, dict[str, str]]:
    """The rows by kind and name."""
    (table,) = (part for part in shown.all("table") if "objects" in part.attributes["class"])
    found = {}
    for body in table.all("tbody"):
        first = next(iter(body.all("tr")))
        cells = list(first.all("td"))
        found[cells[0].text] = {
            cell.attributes.get("data-label", ""): cell.text for cell in cells[1:-1]
        }
    return found


def test_each_object_has_one_row_and_is_read_once(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.serving()
    read: list[tuple[str, str]] = []
    get = world.cluster.get

    def record(kind: Any, namespace: str | None, name: str) -> dict[str, Any]:
        read.append((kind.kind, name))
        return get(kind, namespace, name)

    monkeypatch.setattr(world.cluster, "get", record)

    shown = page(signed_in(world.viewer).get(PAGE))

    rows = rows_by_object(shown)
    assert [" ".join(item) for item in read] == list(rows)
    assert {row["State"] for row in rows.values()} == {"In sync"}
    assert rows["InferenceService detector-r1"] == {
        "State": "In sync",
        "Difference": "",
        "Last change": "not known",
    }
    assert f"{len(rows)} objects: {len(rows)} in sync" in shown.part("drift").text
    assert "Drift is reverted automatically." in shown.text


def test_drifted_and_deleted_objects_are_counted_in_their_rows(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    live = world.cluster.objects[WORKLOAD]
    live["spec"]["predictor"]["minReplicas"] = 7
    live["metadata"]["managedFields"] = [
        {
            "manager": "kubectl-edit",
            "time": world.clock.at.isoformat(),
            "fieldsV1": {"f:spec": {"f:predictor": {"f:minReplicas": {}}}},
        }
    ]
    del world.cluster.objects["PodDisruptionBudget", "vision", "detector-r1"]

    shown = page(signed_in(world.viewer).get(PAGE))

    rows = rows_by_object(shown)
    assert rows["InferenceService detector-r1"] == {
        "State": "Drifted",
        "Difference": "spec.predictor.minReplicas 1 7 by kubectl-edit",
        "Last change": "kubectl-edit just now",
    }
    assert rows["PodDisruptionBudget detector-r1"] == {
        "State": "Missing",
        "Difference": "deleted on the cluster",
        "Last change": "",
    }
    count = f"{len(rows)} objects: {len(rows) - 2} in sync, 1 drifted, 1 missing"
    assert count in shown.part("drift").text
    assert [line.text for line in shown.all("del", "ins")] == [
        *("1", "7"),
        *("minReplicas: 1", "minReplicas: 7"),
    ]
    yaml = shown.part("yaml-" + str(list(rows).index("InferenceService detector-r1") + 1))
    assert "minReplicas: 1" in yaml.verbatim


def test_an_object_of_another_installation_is_not_shown_as_missing(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    labels = world.cluster.objects[WORKLOAD]["metadata"]["labels"]
    labels["slipway.dev/installation"] = "theirs"

    rows = rows_by_object(page(signed_in(world.viewer).get(PAGE)))

    assert rows["InferenceService detector-r1"] == {
        "State": "Not ours",
        "Difference": "An object of this name belongs to another installation of Slipway.",
        "Last change": "",
    }


def test_a_stopped_deployment_misses_nothing(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(is_stopped=True)
    del world.cluster.objects[WORKLOAD]

    rows = rows_by_object(page(signed_in(world.viewer).get(PAGE)))

    assert rows["InferenceService detector-r1"]["State"] == "Stopped"
    assert rows["Namespace vision"]["State"] == "In sync"


def test_without_an_answer_the_rows_are_those_of_the_last_check(
    world: World, signed_in: SignIn
) -> None:
    deployment = world.serving()
    edit = Edit("InferenceService", "detector-r1", "spec.predictor.maxReplicas", "1", "3", by="me")
    drift = Drift(DriftOutcome.PENDING, (edit,), clock.now(), clock.now()).to_json()
    Deployment.objects.filter(pk=deployment.pk).update(drift=drift)
    world.cluster.fail_with = Unreachable("connection refused")

    shown = page(signed_in(world.viewer).get(PAGE))

    rows = rows_by_object(shown)
    assert rows["InferenceService detector-r1"] == {
        "State": "Drifted",
        "Difference": "spec.predictor.maxReplicas 1 3 by me",
        "Last change": "not known",
    }
    assert {row["State"] for name, row in rows.items() if "Inference" not in name} == {"Not known"}
    assert "Drift is shown as the last check found it." in shown.text
    assert "Needs a decision" in shown.text


def test_an_edit_on_a_real_api_server_is_named_and_counted_once(
    live: Live, signed_in: SignIn
) -> None:
    deployment = live.deployed("detector")
    for person in (live.world.member, live.world.lead):
        drift_decisions.set_policy(actor=person, deployment_id=deployment.pk, to=DriftPolicy.HOLD)
    live.edit(f"{ISVC}/detector-r1", {"spec": {"predictor": {"maxReplicas": 3}}})
    live.reconcile_now(deployment)

    shown = page(signed_in(live.world.member).get(PAGE))

    rows = rows_by_object(shown)
    row = rows["InferenceService detector-r1"]
    assert row["State"] == "Drifted"
    assert row["Difference"] == "spec.predictor.maxReplicas 1 3 by kubectl-edit"
    assert row["Last change"].startswith("kubectl-edit")
    assert rows["Namespace vision"]["Last change"].startswith("Slipway")
    in_sync = sum(one["State"] == "In sync" for one in rows.values())
    assert f"{len(rows)} objects: {in_sync} in sync, 1 drifted" in shown.part("drift").text
    assert "Revert to approved" in shown.buttons
    assert "Held, but no longer on the cluster" not in shown.text
