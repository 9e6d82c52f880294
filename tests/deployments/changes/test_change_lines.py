"""What an approver reads of a change: names, values and colours."""

from __future__ import annotations

import pytest
from django.test import Client

from deployments.changes.services import requests
from deployments.models import ModelVersion, Revision
from tests.deployments.signed_in import signed_in
from tests.deployments.world import World
from tests.page import page

__all__ = ["signed_in"]
STEPS = [{"weight": 100, "soak_seconds": 60, "min_requests": 0}]


def state_accuracy(version: ModelVersion, value: float) -> None:
    ModelVersion.objects.filter(pk=version.pk).update(metadata={"metrics": {"accuracy": value}})


@pytest.mark.parametrize(
    ("before", "after", "tone"), [(0.94, 0.91, "worse"), (0.9, 0.95, "better")]
)
def test_approver_reads_labels_and_a_lower_accuracy_is_marked_bad(
    world: World, client: Client, before: float, after: float, tone: str
) -> None:
    deployment = world.serving()
    state_accuracy(world.version1, before)
    state_accuracy(world.version2, after)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
    )
    client.force_login(world.lead)

    shown = page(client.get(f"/approvals/{change.pk}"))

    row = shown.row("Accuracy")
    assert (row["Now"], row["Requested"]) == (str(before), f"{after} ({tone})")
    assert "Batching: Dynamic batching" in shown.text
    text = shown.text
    for manifest in shown.all("pre"):
        text = text.replace(manifest.text, "")
    for value in ("'is_dynamic'", "True", "False", "None", "{'"):
        assert value not in text


def test_roll_back_is_called_by_the_revision_that_comes_back(world: World, client: Client) -> None:
    deployment = world.serving()
    Revision.objects.filter(deployment=deployment).update(number=2)
    first = Revision.objects.get(deployment=deployment)
    first.pk, first.number = None, 1
    first.save()
    client.force_login(world.member)
    confirm = client.get(f"/vision/deployments/{deployment.name}/roll-back?revision=1")

    change = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=1
    )
    client.force_login(world.lead)
    text = page(client.get(f"/approvals/{change.pk}")).text

    assert "Starts r1 again and moves all traffic to it" in page(confirm).text
    assert (change.restored_number, change.revision and change.revision.number) == (1, 1)
    assert f"Roll {deployment.name} back to r1" in text
    assert "Starts r1 again" in text
    assert "r0" not in text
    assert "r3" not in text
