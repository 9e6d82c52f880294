"""The pages of the price catalogue, and their twin in the REST API."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from fleet.models import InstancePrice, Node
from fleet.prices.services import catalogue
from portal.accounts.models import User
from tests.fleet.one_node import NOW, admin, member, node, still_clock, vision
from tests.page import Part, page

__all__ = ["admin", "member", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
FORM = {
    "instance_type": "g5.12xlarge",
    "region": "us-east-1",
    "capacity_type": "spot",
    "usd_per_hour": "1.9",
    "valid_from": "2026-11-20",
    "source": "our bid",
}


def test_node_without_a_price_leads_to_its_form_and_is_priced_there(
    admin: Client, node: Node
) -> None:
    Node.objects.update(capacity_type="spot")

    listed = page(admin.get("/admin/prices"))
    link = "/admin/prices/enter?instance_type=g5.12xlarge&region=us-east-1&capacity_type=spot"
    assert "Nodes without a price" in listed.text
    assert link in listed.links.values()
    form = page(admin.get(link))
    assert form.field("instance_type").value == "g5.12xlarge"
    assert form.field("capacity_type").value == "spot"
    saved = admin.post("/admin/prices/enter", FORM, follow=True)

    assert saved.redirect_chain == [("/admin/prices/of/g5.12xlarge", 302)]
    history = page(saved).text
    assert "2026-11-20" in history
    assert "$1.90" in history
    assert "our bid" in history
    assert "Nodes without a price" not in admin.get("/admin/prices").content.decode()


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("usd_per_hour", "-1", "The price must be more than 0"),
        ("usd_per_hour", "0", "The price must be more than 0"),
        ("usd_per_hour", "1,006", "Use digits and a dot, for example 1.006"),
        ("region", "us east", "Use letters, digits"),
        ("instance_type", "g99.huge", "g99.huge is unknown"),
        ("valid_from", "soon", "Enter a valid date"),
    ],
)
def test_wrong_field_keeps_what_was_typed_and_says_what_to_write(
    admin: Client, node: Node, field: str, text: str, problem: str
) -> None:
    before = InstancePrice.objects.count()

    refused = admin.post("/admin/prices/enter", FORM | {field: text})

    form = page(refused)
    assert refused.status_code == 422
    assert problem in form.problem(field)
    assert form.field(field).value == text
    assert InstancePrice.objects.count() == before


def test_exported_catalogue_is_imported_as_it_is(admin: Client, node: Node) -> None:
    exported = admin.get("/admin/prices.csv").content
    row = InstancePrice.objects.values().get()
    InstancePrice.objects.all().delete()

    file = SimpleUploadedFile("prices.csv", exported, content_type="text/csv")
    imported = admin.post("/admin/prices/import", {"file": file}, follow=True)

    assert "Read 1 price, 1 new." in imported.content.decode()
    again = InstancePrice.objects.values().get()
    assert again | {"id": 0, "origin": ""} == row | {"id": 0, "origin": ""}
    assert next(csv.DictReader(io.StringIO(exported.decode())))["usd_per_hour"] == "5.672000"


def test_import_without_a_file_and_with_a_wrong_line_say_so(admin: Client, node: Node) -> None:
    nothing = admin.post("/admin/prices/import")
    header = ",".join(FORM)
    lines = f"{header}\n{','.join(FORM.values())}\n{','.join((FORM | {'region': '?'}).values())}\n"
    file = SimpleUploadedFile("prices.csv", lines.encode())
    wrong = admin.post("/admin/prices/import", {"file": file})

    assert (nothing.status_code, wrong.status_code) == (422, 422)
    assert "Choose a CSV file." in nothing.content.decode()
    assert "Line 3, region: Use letters, digits" in wrong.content.decode()
    assert InstancePrice.objects.count() == 1


def test_price_is_removed_from_its_history(admin: Client, node: Node) -> None:
    price = InstancePrice.objects.get()

    gone = admin.post(f"/admin/prices/{price.pk}/remove", follow=True)

    assert gone.redirect_chain == [("/admin/prices", 302)]
    assert "No prices loaded" in gone.content.decode()
    assert admin.get("/admin/prices/of/g5.12xlarge").status_code == 404


def test_reading_from_aws_is_offered_only_where_it_is_switched_on(
    admin: Client, node: Node, settings: Any
) -> None:
    assert "Read from AWS" not in admin.get("/admin/prices").content.decode()
    refused = admin.post("/admin/prices/refresh", follow=True).content.decode()
    assert "Set SLIPWAY_AWS_PRICES=1" in refused

    settings.SLIPWAY_AWS_PRICES = True
    assert "Read from AWS" in admin.get("/admin/prices").content.decode()


def test_prices_are_loaded_by_rest(admin: Client, member: Client, node: Node) -> None:
    row = {
        "instance_type": "NVIDIA-L40S",
        "region": "on-site",
        "capacity_type": "own",
        "usd_per_hour": "3.2",
        "price_source": "depreciation over 4 years",
        "gpu_name": "l40s",
        "gpu_count": 4,
    }
    body = {"prices": [row]}

    refused = member.post("/api/v1/prices", body, content_type="application/json")
    misspelt = {"prices": [row | {"usd_per_hours": "3"}]}
    unknown = admin.post("/api/v1/prices", misspelt, content_type="application/json")
    assert (refused.status_code, unknown.status_code) == (403, 422)
    assert InstancePrice.objects.count() == 1
    loaded = admin.post("/api/v1/prices", body, content_type="application/json")

    assert loaded.json() == {"prices": 1, "new": 1, "unpriced": []}
    stored = InstancePrice.objects.get(instance_type="NVIDIA-L40S")
    assert (stored.usd_per_hour_amount, stored.source, stored.valid_from) == (
        Decimal("3.2"),
        "depreciation over 4 years",
        NOW.date(),
    )


def test_catalogue_is_paged_with_the_types_of_the_fleet_first(admin: Client, node: Node) -> None:
    catalogue.load_catalogue(actor=User.objects.get(username="ada"))
    Node.objects.update(instance_type="g6.xlarge", capacity_type="spot")
    InstancePrice.objects.create(
        **_hardware("g6.xlarge"), region="eu-west-1", usd_per_hour_amount=1, capacity_type="spot"
    )
    InstancePrice.objects.create(
        **_hardware("g6.xlarge"), region="us-east-1", usd_per_hour_amount=2, capacity_type="spot"
    )

    first = page(admin.get("/admin/prices"))
    second = page(admin.get("/admin/prices?page=2"))

    rows = [row.text for row in _prices(first)]
    assert len(rows) == 20
    assert rows[0].startswith("g6.xlarge 1 node")
    assert "us-east-1 spot" in rows[0]
    assert [row.split()[0] for row in rows[1:4]] == ["g6.xlarge", "g6.xlarge", "p4d.24xlarge"]
    assert not {row.text for row in _prices(second)} & set(rows)
    assert len(_prices(second)) == 20


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("q=G5.12", {"g5.12xlarge"}),
        ("q=own+contract", {"NVIDIA-L40S"}),
        ("region=on-site", {"NVIDIA-L40S"}),
        ("capacity=own", {"NVIDIA-L40S"}),
        ("capacity=spot", set()),
        ("region=nowhere&capacity=x&sort=drop&page=-3", {"g5.12xlarge", "NVIDIA-L40S"}),
    ],
)
def test_prices_are_filtered_and_invalid_filters_are_ignored(
    admin: Client, node: Node, query: str, types: set[str]
) -> None:
    InstancePrice.objects.create(
        **_hardware("NVIDIA-L40S") | {"source": "own contract 7"},
        region="on-site",
        usd_per_hour_amount=3,
        capacity_type="own",
    )

    shown = page(admin.get(f"/admin/prices?{query}"))

    assert {row.text.split()[0] for row in _prices(shown)} == types
    assert ("No price matches" in shown.text) == (not types)


def test_prices_are_sorted_both_ways_and_htmx_gets_the_rows_alone(
    admin: Client, node: Node
) -> None:
    InstancePrice.objects.create(
        **_hardware("g4dn.xlarge"), region="us-east-1", usd_per_hour_amount=1
    )

    cheap = [row.text.split()[0] for row in _prices(page(admin.get("/admin/prices?sort=price")))]
    dear = [row.text.split()[0] for row in _prices(page(admin.get("/admin/prices?sort=-price")))]
    rows = admin.get("/admin/prices", headers={"HX-Request": "true", "HX-Target": "price-rows"})

    assert cheap == dear[::-1] == ["g4dn.xlarge", "g5.12xlarge"]
    assert not page(rows).is_whole_page
    assert "g4dn.xlarge" in page(rows).text


def _hardware(instance_type: str) -> dict[str, Any]:
    return {
        "instance_type": instance_type,
        "gpu_name": "l4",
        "gpu_count": 1,
        "gpu_memory_mib": 23034,
        "vcpu": 4,
        "memory_gib": 16,
        "source": "list",
        "valid_from": NOW.date(),
    }


def _prices(shown: Part) -> list[Part]:
    """The rows of the catalogue, not of nodes without a price."""
    return [
        row
        for row in shown.all("tr")
        if any("/admin/prices/of/" in link.attributes.get("href", "") for link in row.all("a"))
    ]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"usd_per_hour": "cheap"}, "prices[1].usd_per_hour"),
        ({"region": "eu west"}, "prices[1].region"),
        ({"usd_per_hour": "4"}, "prices[1]"),
    ],
)
def test_a_refused_item_of_json_is_named_by_its_place(
    admin: Client, wrong: dict[str, str], field: str
) -> None:
    row = {"instance_type": "NVIDIA-L40S", "region": "on-site", "capacity_type": "own"}
    row |= {"usd_per_hour": "3.2", "gpu_name": "l40s", "gpu_count": "4"}
    before = InstancePrice.objects.count()

    answer = admin.post(
        "/api/v1/prices", {"prices": [row, row | wrong]}, content_type="application/json"
    )

    assert (answer.status_code, [e["field"] for e in answer.json()["errors"]]) == (422, [field])
    assert "Line" not in answer.content.decode()
    assert InstancePrice.objects.count() == before
