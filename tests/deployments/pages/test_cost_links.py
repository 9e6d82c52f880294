"""Names on the Costs page lead to pages that exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from fleet.models import LedgerRow
from portal.accounts.models import User
from tests.deployments.advice import history
from tests.deployments.world import World
from tests.page import page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("group", "link"),
    [("deployment", "/vision/deployments/detector"), ("model", "/vision/models/detector")],
)
def test_what_the_demo_makes_up_has_no_page_to_lead_to(
    world: World, signed_in: Callable[[User], Client], group: str, link: str
) -> None:
    deployment = world.serving()
    history.write(world, deployment, hours=2)
    labels = {"deployment": "detector", "model": "detector", "revision": "r1"}
    template = LedgerRow.objects.first()
    assert template is not None
    rows = [
        ("real", labels),
        ("made-up", labels | {"deployment": "ocr", "model": "ocr"}),
        ("packed", labels | {"deployment": "two", "model": "detector + ocr"}),
    ]
    for uid, own in rows:
        template.pk, template.node_uid, template.workload_labels = None, uid, own
        template.is_demo = True
        template.save(force_insert=True)

    client = signed_in(world.viewer)
    links = page(client.get(f"/costs?group={group}")).links

    assert links["vision/detector"] == link
    assert client.get(link).status_code == 200
    assert "vision/ocr" not in links
    assert "vision/detector + ocr" not in links
