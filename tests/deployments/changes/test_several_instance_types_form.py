"""The form offers the other types that fit, shows the price as a range, and the request says all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.changes.selectors import deployment_descriptions
from deployments.models import ChangeRequest, ModelVersion
from portal.accounts.models import User
from tests import page as pages
from tests.deployments.changes.test_deploy_form_guards import (
    filled_in,
    first_page,
    summary_of,
    text_of,
)
from tests.deployments.changes.test_new_deployment import check, send
from tests.deployments.preflight.test_several_instance_types import nodes_of
from tests.deployments.world import World

PARTS = {"weights": 700, "activations": 2000, "runtime": 450}


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    nodes_of(world, "g6.xlarge", product="NVIDIA-L4", memory_mib=23034, price="0.8048")
    nodes_of(world, "g4dn.xlarge", product="Tesla-T4", memory_mib=2048, price="0.526")
    ModelVersion.objects.update(signature={"vram_parts_mib": PARTS}, vram_estimate_mib=3150)
    return signed_in(world.member)


def test_the_form_names_the_types_that_fit_too(world: World, client: Client) -> None:
    page = check(
        client,
        first_page(world, client),
        name="street",
        share="g5.xlarge|nvidia.com/gpu|1",
    )

    assert "The model also fits on g6.xlarge ($0.80 an hour)." in text_of(page)


def test_a_request_of_several_types_is_shown_with_all_of_them_and_a_range(
    world: World, client: Client
) -> None:
    page = filled_in(
        world,
        client,
        share="g5.xlarge|nvidia.com/gpu|1",
        placement_other_instance_types="g6.xlarge",
    )
    sent = send(client, page)

    assert "also on g6.xlarge" in summary_of(pages.page(page), "Placement")
    side = pages.page(page).part("side")
    assert next(side.all("h2")).text == "$0.80 to $1.01 / h"
    assert side.term("A month") == "$588 to $734"
    change = ChangeRequest.objects.get()
    assert sent.status_code == 302
    shown = text_of(client.get(sent.url))
    assert (
        "1 GPU of on-demand g5.xlarge or g6.xlarge"
        in deployment_descriptions.describe(change).detail
    )
    assert "$0.80 to $1.01 / h" in shown
    assert change.gpu_name == "NVIDIA-A10G, NVIDIA-L4"
