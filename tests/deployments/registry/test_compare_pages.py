"""Versions side by side, and a metric over versions with what serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.web.charts import metric_over_versions
from portal.accounts.models import User
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]
COMPARED = "/vision/models/detector/compare?v=1&v=2"


def describe(
    version: ModelVersion, load_test: dict[str, Any] | None = None, **columns: Any
) -> None:
    if load_test is not None:
        measured = {"outcome": "answered", "memory_mib": 300, "load_seconds": 1.5, **load_test}
        columns["signature"] = {**version.signature, "load_test": measured}
    ModelVersion.objects.filter(pk=version.pk).update(**columns)


def compared(client: Client) -> dict[str, tuple[str, str, str]]:
    return {
        row["Field"]: (row["Version 1"], row["Version 2"], row["Difference"])
        for row in page(client.get(COMPARED)).rows
        if "Version 1" in row
    }


def test_each_metric_label_size_and_time_is_a_row(world: World, signed_in: SignIn) -> None:
    describe(
        world.version1,
        {"first_ms": 40.0, "warm_ms": 10.0},
        metadata={"metrics": {"accuracy": 0.9}, "labels": {"edge": "", "precision": "fp32"}},
        size_bytes=1024,
        vram_estimate_mib=400,
    )
    describe(
        world.version2,
        {"first_ms": 40.0, "warm_ms": 15.0},
        metadata={"metrics": {"accuracy": 0.95}, "labels": {"edge": "", "precision": "int8"}},
        size_bytes=2048,
        vram_estimate_mib=200,
    )

    rows = compared(signed_in(world.viewer))

    minus = "\N{MINUS SIGN}"
    assert rows["accuracy"] == ("0.9", "0.95", "better +0.05 (+5.6%)")
    assert rows["edge"] == ("yes", "yes", "same")
    assert rows["precision"] == ("fp32", "int8", "differs")
    assert rows["files"] == ("1 KiB", "2 KiB", "differs +100%")
    assert rows["GPU memory, estimate"] == ("400 MiB", "200 MiB", f"better {minus}50%")
    assert rows["memory, load test"] == ("300 MiB", "300 MiB", "same")
    assert rows["loaded in"] == ("1.5 s", "1.5 s", "same")
    assert rows["first answer"] == ("40.0 ms", "40.0 ms", "same")
    assert rows["warm request"] == ("10.0 ms", "15.0 ms", "worse +50%")


def test_what_is_the_same_is_dimmed_and_groups_without_rows_say_so(
    world: World, signed_in: SignIn
) -> None:
    describe(world.version1, metadata={"labels": {"edge": ""}})
    describe(world.version2, metadata={"labels": {"edge": ""}})

    shown = page(signed_in(world.viewer).get(COMPARED))

    (edge,) = (row for row in table_rows(shown) if row.text.startswith("edge "))
    assert edge.attributes["class"] == "same"
    assert shown.text.count("Neither version has any.") >= 1


def table_rows(shown: Part) -> list[Part]:
    return list(shown.all("tr"))


def test_the_chart_marks_what_serves(world: World, signed_in: SignIn) -> None:
    describe(world.version1, metadata={"metrics": {"accuracy": 0.9}})
    describe(world.version2, metadata={"metrics": {"accuracy": 0.95}})
    versions = list(ModelVersion.objects.filter(pk__in=[world.version1.pk, world.version2.pk]))
    deployment = world.serving()

    chart = metric_over_versions(versions, "accuracy", {world.version1.pk: [deployment]})

    assert chart is not None
    assert list(chart.header) == ["Version", "accuracy", "Serves in"]
    assert list(chart.rows) == [("1", "0.9", "detector (production)"), ("2", "0.95", "")]
    assert [value["mark"] for value in chart.spec["data"]["values"]] == ["production", ""]
    assert [entry.text for entry in chart.legend] == ["serves", "does not serve"]
    model = page(signed_in(world.viewer).get("/vision/models/detector"))
    assert "detector (production)" in model.text
