"""A fact reads the same in every place that shows it. Each test asks a pair of places."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from deployments.changes.selectors.subjects import deployment_of, pipeline_of
from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import apply_changes
from deployments.models import Deployment, Rollout
from deployments.pipelines.services import requests as pipeline_requests
from deployments.preflight.services import preflight
from deployments.registry.domain.scanning import verdicts
from deployments.registry.domain.scanning.verdicts import FileScan, ScannerVerdict, ScanOutcome
from deployments.registry.services.scans import scanning
from deployments.rollouts.domain.step_observation import StepObservation
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.services import actions
from fleet.clusters.selectors import clusters
from portal.accounts.models import User
from tests.deployments import onnx_models
from tests.deployments.canaries import STEPS, serve, start, view
from tests.deployments.pipelines_world import draft, members
from tests.deployments.signed_in import HTMX
from tests.deployments.uploading import Upload
from tests.deployments.world import World
from tests.page import Part, page

LIST, ONE = "/vision/deployments", "/vision/deployments/detector"
SignIn = Callable[[User], Client]
WHOLE_STEP = [{"weight": 100, "soak_seconds": 0, "min_requests": 0}]


def poll(client: Client, shown: Part) -> Part:
    """The next poll of a deployment's page."""
    address = shown.part("deployment-head").attributes["hx-get"]
    return page(client.get(address, **HTMX, HTTP_HX_TARGET="deployment-head"))


def pills(part: Part) -> list[str]:
    return [
        one.text for one in part.all("span") if one.attributes.get("class", "").startswith("pill")
    ]


def row_of(client: Client, address: str, name: str = "detector") -> dict[str, str]:
    return next(row for row in page(client.get(address)).rows if name in row.get("Name", ""))


def mini(client: Client, address: str) -> str:
    (bar,) = (
        one
        for one in page(client.get(address)).all("svg")
        if "mini" in one.attributes.get("class", "")
    )
    return bar.attributes["aria-label"]


def test_head_and_revisions_become_ready_in_one_poll(world: World, signed_in: SignIn) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.approved(change)
    deployment = deployment_of(change)
    client = signed_in(world.viewer)
    shown = page(client.get(ONE))
    assert pills(shown.part("deployment-head"))[0] == "Progressing"
    assert "Ready" not in pills(shown.part("overview-now"))
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    polled = poll(client, shown)

    assert pills(polled.part("deployment-head"))[0] == "Ready"
    assert pills(polled.part("overview-now")) == ["Ready"]


def test_head_list_and_home_name_one_state(world: World, signed_in: SignIn) -> None:
    deployment, rollout = start(world)
    client = signed_in(world.viewer)

    def shown() -> set[str]:
        head = pills(page(client.get(ONE)).part("deployment-head"))[0]
        return {head, *(row_of(client, address)["Status"] for address in (LIST, "/vision"))}

    assert shown() == {"Canary 10%"}
    actions.pause(actor=world.member, rollout_id=rollout.pk)
    assert shown() == {"Paused at 10%"}
    actions.abort(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(deployment)
    assert shown() == {"Aborting"}


def test_evidence_is_of_the_step_beside_it(world: World, signed_in: SignIn) -> None:
    steps = [{"weight": 10, "soak_seconds": 0, "min_requests": 0}, STEPS[1]]
    deployment, rollout = start(world, steps)
    serve(world, deployment, 10)
    before = view(world, rollout)
    assert before.guards
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=before.evidence_hash)

    now, text = view(world, rollout), page(signed_in(world.viewer).get(f"{ONE}/rollout")).text

    assert (now.rollout.step_index, now.guards, now.evidence_at) == (1, (), None)
    assert "Evidence at this step" in text
    assert "not checked yet" in text


def test_evidence_after_the_last_step_is_called_that_of_the_last_step(
    world: World, signed_in: SignIn
) -> None:
    deployment, rollout = start(world)
    serve(world, deployment, 10)
    shown = view(world, rollout)
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )

    text = page(signed_in(world.viewer).get(f"{ONE}/rollout")).text

    assert Rollout.objects.get().phase == "promoting"
    assert "Evidence at the last step" in text
    assert "Evidence at this step" not in text


def test_a_pipeline_that_is_applied_waits_for_no_approval(world: World, signed_in: SignIn) -> None:
    members(world)
    change = pipeline_requests.request_create(actor=world.member, draft=draft(world))
    client = signed_in(world.viewer)
    address = f"/vision/pipelines/{pipeline_of(change).name}"
    waiting = page(client.get(address))
    assert pills(waiting.part("pipeline-request")) == ["Submitted"]
    assert "Waiting for approval." in waiting.part("pipeline-state").text
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    for state, reason in (
        ("Approved", "Approved. It is applied next."),
        ("Applying", "Approved. The cluster has not been observed yet."),
    ):
        polled = page(client.get(address, **HTMX, HTTP_HX_TARGET="pipeline-head"))
        listed = page(client.get("/vision/pipelines")).text
        assert pills(polled.part("pipeline-request")) == [state]
        assert reason in polled.part("pipeline-state").text
        assert "aiting for approval" not in polled.text + listed
        assert "waits for approval" not in listed
        apply_changes.apply_change(change_id=change.pk)


def test_what_never_ran_has_no_traffic_anywhere(world: World, signed_in: SignIn) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.approved(change)
    client = signed_in(world.viewer)
    assert deployment_of(change).stable_revision is not None

    assert [mini(client, address) for address in (LIST, "/vision")] == ["no traffic"] * 2
    head = page(client.get(ONE)).part("deployment-head").text
    assert "100%" not in head
    assert "No revision is serving yet" in head
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment_of(change))
    assert [mini(client, address) for address in (LIST, "/vision")] == ["all traffic to stable"] * 2
    assert "100%" in page(client.get(ONE)).part("deployment-head").text


def test_a_canary_costs_the_same_in_the_list_at_home_and_on_its_page(
    world: World, signed_in: SignIn
) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan={"watch_seconds": 600},
    )
    client = signed_in(world.lead)
    shown = page(client.get(f"/approvals/{change.pk}"))
    (cost,) = (
        shown.term(term.text) for term in shown.all("dt") if term.text.startswith("Running both")
    )
    rows = page(client.get("/approvals")).rows
    (row,) = (row for row in rows if row.get("Cost", "").endswith(" once"))

    assert cost.endswith(" once")
    assert row["Cost"] == cost
    assert f"· {cost}" in page(client.get("/vision")).text


def test_a_deployment_costs_the_same_in_the_list_and_on_its_page(
    world: World, signed_in: SignIn
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    client = signed_in(world.lead)
    cost = page(client.get(f"/approvals/{change.pk}")).term("Monthly cost (min)")
    (row,) = (row for row in page(client.get("/approvals")).rows if row.get("Cost"))

    assert row["Cost"] == f"{cost} a month"


def test_the_check_counts_the_objects_that_the_page_lists(world: World, signed_in: SignIn) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    (check,) = (check for check in change.checks if check["name"] == "Server dry-run")
    text = page(signed_in(world.lead).get(f"/approvals/{change.pk}")).text

    count = preflight.check_deploy(
        world.draft("other"), world.version1, clusters.get_cluster(world.cluster_id)
    ).manifests.count("\nkind: ")
    assert f"all {count} objects and the route" in check["detail"]
    assert f"{count} objects, exactly as they will be applied" in text


def test_a_candidate_with_all_requests_is_not_promoted_from_100_to_100(
    world: World, signed_in: SignIn
) -> None:
    deployment, _ = start(world, WHOLE_STEP)
    serve(world, deployment, 100)
    promotable = StepObservation(is_promotable=True, reason="enough requests")
    Rollout.objects.update(observed=promotable.to_json())
    shown = rollouts.view_of(actor=world.lead, rollout=Rollout.objects.get())
    assert (shown.requested_weight, shown.next_weight, shown.is_promotable) == (100, 100, True)
    client = signed_in(world.lead)

    page_of_rollout = page(client.get(f"{ONE}/rollout"))
    home = page(client.get("/vision")).text

    assert "Promote to stable" in page_of_rollout.buttons
    assert "Promote fully" not in page_of_rollout.text
    assert "100 →" not in page_of_rollout.text
    assert "detector 100% → stable" in home
    confirm = client.get(f"{ONE}/rollout/promote-fully")
    assert (confirm.status_code, confirm["Location"]) == (302, f"{ONE}/rollout")


def test_a_tab_without_live_parts_polls_its_head_alone(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.viewer)

    polled = poll(client, page(client.get(f"{ONE}/cost")))

    assert [
        one.attributes["id"]
        for one in polled.all("div", "section", "aside")
        if "hx-swap-oob" in one.attributes
    ] == []
    assert pills(polled.part("deployment-head"))[0] == "Ready"


def test_charts_come_once_a_minute(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.viewer)
    first = page(client.get(ONE))

    same = poll(client, first)
    world.clock.move(60)
    later = poll(client, same)

    def ids(part: Part) -> list[str]:
        return [
            one.attributes["id"]
            for one in part.all("div", "section", "aside")
            if "hx-swap-oob" in one.attributes
        ]

    assert ids(same) == ["figures", "overview-now"]
    assert ids(later) == ["figures", "overview-now", "overview-charts"]
    assert Deployment.objects.get().state == "ready"


def test_a_scan_names_the_engines_that_read_a_file(verified: Upload, signed_in: SignIn) -> None:
    version = verified(onnx_models.linear())
    report = verdicts.from_json(version.scan)
    assert report is not None
    outcomes = {one.scanner: one.outcome for one in report.files[0].verdicts}
    step = next(check for check in version.checks if check["name"] == "Scan")["detail"]
    ran, _, skipped = step.partition("; not for this format: ")

    assert ran.startswith("clean: ")
    for scanner, outcome in outcomes.items():
        assert (scanner in ran) == (outcome == "clean")
        assert (scanner in skipped) == (outcome == "skipped")


def test_a_file_that_every_engine_skipped_is_not_called_clean() -> None:
    skipped = ScannerVerdict("picklescan", "1", ScanOutcome.SKIPPED)
    report = scanning.report_of([FileScan("model.bin", (skipped,))])

    assert (report.outcome, report.is_blocking) == (ScanOutcome.SKIPPED, False)
    assert report.describe_scanned().startswith("not scanned; not for this format: ")
