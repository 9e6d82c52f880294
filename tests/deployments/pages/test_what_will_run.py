"""An approver reads what a request changes; of a first deployment what was chosen, with the defaults behind a click."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from deployments.changes.services import requests
from deployments.changes.web import field_diff
from deployments.models import ChangeRequest
from portal.accounts.models import User
from tests.deployments.canaries import STEPS
from tests.deployments.world import World
from tests.page import Part, page
from tests.rollout_plans import AT_ONCE

SignIn = Callable[[User], Client]


def card_of(client: Client, change: ChangeRequest, title: str) -> Part:
    shown = page(client.get(f"/approvals/{change.pk}"))
    return next(card for card in shown.all("section") if card.text.startswith(title))


def terms_of(part: Part) -> dict[str, str]:
    names, values = part.all("dt"), part.all("dd")
    return {name.text: value.text for name, value in zip(names, values, strict=True)}


def test_of_a_first_deployment_what_was_chosen_is_read_and_the_defaults_are_folded(
    world: World, signed_in: SignIn
) -> None:
    draft = world.draft(instances_per_gpu=2)
    change = requests.request_deploy(actor=world.member, draft=draft)

    card = card_of(signed_in(world.lead), change, "What will run")

    (folded,) = card.all("details")
    defaults = terms_of(folded)
    chosen = {name: value for name, value in terms_of(card).items() if name not in defaults}
    assert chosen["Version"] == "detector:1"
    assert chosen["Engine"] == "KServe · Triton"
    assert chosen["Instances per GPU"] == "2"
    assert chosen["Image"] == change.revision.spec["image"] != ""
    assert chosen["Network: Callers"] == "Public (no authentication)"
    for name, value in {"GPUs": "1", "Max replicas": "1", "CPU": "2", "Memory": "8Gi"}.items():
        assert chosen[name] == value
    assert defaults["Batching: Dynamic batching"] == "yes"
    assert defaults["Autoscaling"] == "Fixed"
    assert folded.text.startswith(f"Default settings {len(defaults)}")
    assert len(chosen) < 15 < len(defaults)


def test_of_a_next_version_only_what_differs_is_read(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )

    card = card_of(signed_in(world.lead), change, "What changes")

    rows = {row["Field"]: (row["Now"], row["Requested"]) for row in card.rows}
    assert rows["Version"] == ("detector:1", "detector:2")
    assert "Max replicas" not in rows
    assert terms_of(card)["Max replicas"] == "1"


def test_a_choice_that_is_automatic_is_nothing_that_serves() -> None:
    line = {"field": "scaling.kind", "before": "", "after": "fixed"}

    diff = field_diff.from_lines([line])

    assert not diff.has_before


def test_fields_of_a_pipeline_have_no_defaults() -> None:
    diff = field_diff.from_lines([{"field": "step 1", "before": "", "after": "titles"}])

    assert [line.after for line in diff.shown] == ["titles"]
    assert diff.folded == []
