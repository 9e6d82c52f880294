"""The plan form has percentile and query guards; approvers read them unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client

from deployments.models import ChangeRequest, RolloutTemplate
from deployments.plans.web import plan_rows
from fleet.models import Cluster
from portal.accounts.models import User
from tests.deployments.world import World
from tests.page import page

URL = "/vision/deployments/detector/canary"
SignIn = Callable[[User], Client]
ROWS = {
    "steps-TOTAL_FORMS": "6",
    "steps-INITIAL_FORMS": "0",
    "queries-TOTAL_FORMS": "6",
    "queries-INITIAL_FORMS": "0",
}
QUERY = 'sum(rate(errors{pod=~"$workload-.*"}[$window]))'


def typed(world: World, **changed: Any) -> dict[str, Any]:
    return {
        "version": str(world.version2.pk),
        "has_plan": "1",
        **ROWS,
        "kind": "canary",
        "steps-0-weight": "10",
        "latency_p95-max": "40",
        "latency_p95-max_ratio": "1.5",
        "queries-0-name": "Checkout errors",
        "queries-0-query": QUERY,
        "queries-0-max": "2.5",
        "queries-0-breaches": "4",
        "queries-0-dry_run": "on",
        **changed,
    }


def test_percentiles_and_queries_are_requested_and_shown_to_approvers(
    world: World, signed_in: SignIn
) -> None:
    # Nobody listens there: what cannot be tried now is no reason to refuse.
    Cluster.objects.update(prometheus_url="http://127.0.0.1:1")
    world.serving()

    answer = signed_in(world.member).post(URL, typed(world))

    change = ChangeRequest.objects.get(kind="canary")
    assert change.plan["guards"] == [
        {
            "metric": "latency_p95",
            "max": 40.0,
            "max_ratio": 1.5,
            "ignore_below": 2.0,
            "dry_run": False,
        },
        {
            "metric": "promql",
            "name": "Checkout errors",
            "query": QUERY,
            "max": 2.5,
            "min": None,
            "breaches": 4,
            "dry_run": True,
        },
    ]
    page = signed_in(world.lead).get(answer["Location"]).content.decode()
    assert "sum(rate(errors{pod=~&quot;$workload-.*&quot;}[$window]))" in page
    assert "≤ 2.5, 4 breaches in a row" in page
    assert "≤ 40 ms and ≤ 1.5 times stable" in page


def test_what_is_wrong_with_a_query_stands_at_the_guards(world: World, signed_in: SignIn) -> None:
    Cluster.objects.update(prometheus_url="http://127.0.0.1:1")
    world.serving()

    answer = signed_in(world.member).post(URL, typed(world, **{"queries-0-query": "x{a='$team'}"}))

    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Checkout errors: $team is not a placeholder. Use one of $namespace" in page
    assert "x{a=&#x27;$team&#x27;}" in page, "what was typed is still there"
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_a_cluster_without_prometheus_says_so_before_and_after(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    client = signed_in(world.member)

    page = client.get(URL).content.decode()
    answer = client.post(URL, typed(world))

    assert "Cluster eks-test has no Prometheus, so" in page
    assert answer.status_code == 422
    assert "No Prometheus is registered for cluster eks-test." in answer.content.decode()
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_a_template_keeps_queries_and_begins_the_form_with_them(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    client = signed_in(world.member)

    client.post(URL, typed(world, keep="1", keep_as="careful"))
    kept = RolloutTemplate.objects.get()
    form = page(client.get(f"{URL}?template={kept.pk}"))

    assert [row["metric"] for row in kept.plan["guards"]] == ["latency_p95", "promql"]
    assert form.field("queries-0-name").value == "Checkout errors"
    assert form.group("Own queries").text.startswith("Own queries 1 PromQL query")


def test_percentiles_of_tokens_are_offered_where_a_server_counts_them_or_the_plan_has_them() -> (
    None
):
    def offered(initial: dict[str, Any], *, has_tokens: bool) -> set[str]:
        forms = plan_rows.guard_forms(None, initial, has_tokens=has_tokens)
        return {str(form.prefix) for form in forms if str(form.prefix).endswith("_p95")}

    both = {"time_to_first_token_p95", "inter_token_latency_p95"}
    assert offered({}, has_tokens=True) == {"latency_p95", *both}
    assert offered({}, has_tokens=False) == {"latency_p95"}
    kept = {"inter_token_latency_p95": {"max": 50.0}}
    assert offered(kept, has_tokens=False) == {"latency_p95", "inter_token_latency_p95"}
