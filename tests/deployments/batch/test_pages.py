"""The pages of batch jobs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.test import Client

from deployments.models import BatchJob, ModelVersion
from fleet.costs.domain.results import GroupKey
from fleet.costs.web import board
from portal.accounts.models import Team
from tests.deployments import queues
from tests.deployments.batch.bench import IN, OUT, Bench
from tests.page import page
from tests.portal.many_rows.copies import copies, digest


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_member_fills_in_the_form_and_sees_the_rows_go(bench: Bench) -> None:
    bench.put_rows(500)
    client = signed_in(bench.world.member)
    form = client.get("/vision/batch/new")
    assert b"detector:1" in form.content
    assert form.content.count(b'aria-current="page"') == client.get(
        "/vision/deployments"
    ).content.count(b'aria-current="page"')

    answer = client.post(
        "/vision/batch/new",
        {
            "name": "scores",
            "model_version": "detector:1",
            "input": f"s3://{bench.bucket}/{IN}rows.jsonl",
            "output": f"s3://{bench.bucket}/{OUT}scores/",
            "gpus": "eks-test g5.xlarge nvidia.com/gpu",
            "capacity": "on-demand",
            "workers": "1",
            "requests": "4",
            "hours": "2",
            "error_limit": "0",
            "cpu": "2",
            "memory": "8Gi",
        },
    )
    assert answer.headers["Location"] == "/vision/batch/scores"
    assert b'hx-get="/vision/batch" hx-trigger="every 10s"' in client.get("/vision/batch").content
    job = bench.tick(BatchJob.objects.get())
    bench.tick(job)
    bench.work()
    bench.tick(job)
    bench.tick(job)

    text = page(client.get("/vision/batch/scores")).text
    assert "500 of 500 rows" in text
    assert "At most, until the deadline $2.01" in text
    assert job.output in text
    assert b'hx-trigger="every 10s"' not in client.get("/vision/batch").content
    listed = page(client.get("/vision/batch")).text
    assert "500 / 500" in listed


def test_a_lead_sees_why_it_waits_and_approves(bench: Bench) -> None:
    bench.put_rows(1)
    Team.objects.filter(slug="vision").update(monthly_budget_amount=Decimal(1))
    job = bench.tick(bench.request())
    assert b"Approve" not in signed_in(bench.world.member).get("/vision/batch/scores").content
    client = signed_in(bench.world.lead)
    shown = client.get("/vision/batch/scores")
    assert b"of $1.00" in shown.content

    assert client.post("/vision/batch/scores", {"decision": "reject"}).status_code == 422
    assert client.post("/vision/batch/scores", {"decision": "approve"}).status_code == 302
    job.refresh_from_db()
    assert job.state == "running"


def test_a_refusal_stands_at_its_field_and_keeps_what_was_typed(bench: Bench) -> None:
    client = signed_in(bench.world.member)
    answer = client.post(
        "/vision/batch/new",
        {
            "name": "scores",
            "model_version": "detector:1",
            "input": f"s3://{bench.bucket}/batch/nlp/x",
            "output": "s3://x",
            "gpus": "eks-test g5.xlarge nvidia.com/gpu",
            "capacity": "spot",
            "workers": "1",
            "requests": "4",
            "hours": "2",
            "error_limit": "0",
            "cpu": "2",
            "memory": "8Gi",
        },
    )
    assert answer.status_code == 422
    assert b"vision may not read s3://" in answer.content
    assert b"batch/nlp/x" in answer.content
    assert not BatchJob.objects.exists()


def test_an_error_in_a_fold_opens_it(bench: Bench) -> None:
    client = signed_in(bench.world.member)
    fresh = page(client.get("/vision/batch/new"))

    wrong = page(client.post("/vision/batch/new", {"name": "scores", "hours": "ten"}))

    headings = ("Output", "Workers", "Limits", "Queue")
    assert [fresh.group(heading).is_open for heading in headings] == [False] * 4
    assert fresh.group("Limits").text.startswith(
        "Limits ends after 6 h, tolerates 100 rows without an answer"
    )
    assert wrong.group("Limits").is_open
    assert not wrong.group("Output").is_open
    assert wrong.field("hours").value == "ten"
    assert wrong.field("name").value == "scores"


def test_a_row_is_shown_for_the_version_that_is_chosen(bench: Bench) -> None:
    tensor = {"name": "x", "dtype": "FP32", "dims": [-1, 2]}
    signature = {"inputs": [tensor], "outputs": [], "max_batch_size": 32}
    ModelVersion.objects.filter(pk=bench.world.version1.pk).update(signature=signature)
    client = signed_in(bench.world.member)
    swap = {"HX-Request": "true", "HX-Target": "batch-estimate"}

    known = page(client.post("/vision/batch/new", {"model_version": "detector:1"}, headers=swap))
    missing = page(client.post("/vision/batch/new", {"model_version": "detector:9"}, headers=swap))

    row = known.part("row-format")
    assert row.attributes["hx-swap-oob"] == "true"
    assert "A row of detector:1, in JSON lines or CSV" in row.text
    assert '{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 0.5]}' in row.text
    assert 'id,x r1,"[0.5, 0.5]"' in row.text
    assert "Choose a version" in missing.part("row-format").text


def test_the_costs_page_leads_to_the_job() -> None:
    query: Any = None
    key = GroupKey(team_slug="vision", deployment="batch/scores")
    assert board.name_url(query, key) == "/vision/batch/scores"
    key = GroupKey(team_slug="vision", deployment="scores")
    assert board.name_url(query, key) == "/vision/deployments/scores"


def test_names_of_batch_jobs_are_escaped_and_unknown_ones_are_not_there(bench: Bench) -> None:
    client = signed_in(bench.world.member)
    assert client.get("/vision/batch/none").status_code == 404
    assert client.get("/nlp/batch/scores").status_code == 404


def test_a_team_without_a_version_reads_to_upload_one(bench: Bench) -> None:
    ModelVersion.objects.update(state="archived")

    form = signed_in(bench.world.member).get("/vision/batch/new")

    assert (
        "The team has no ready version that Triton serves. Upload a model first." in page(form).text
    )


def test_of_many_versions_each_can_be_typed(bench: Bench) -> None:
    copies(bench.world.version1, 101, number=lambda n: 10 + n, sha256=digest)
    client = signed_in(bench.world.member)
    typed = {
        "name": "scores",
        "input": f"s3://{bench.bucket}/{IN}rows.jsonl",
        "output": f"s3://{bench.bucket}/{OUT}scores/",
        "gpus": "eks-test g5.xlarge nvidia.com/gpu",
        "capacity": "spot",
        "workers": "1",
        "requests": "4",
        "hours": "2",
        "error_limit": "0",
        "cpu": "2",
        "memory": "8Gi",
    }

    suggested = page(client.get("/vision/batch/new")).part("versions").options
    unknown = client.post("/vision/batch/new", {**typed, "model_version": "detector:9"})
    unreadable = client.post("/vision/batch/new", {**typed, "model_version": "detector"})

    # The newest; older ones are typed.
    assert suggested == [f"detector:{number}" for number in range(111, 11, -1)]
    assert "Version vision/detector:9 does not exist" in unknown.content.decode()
    assert "Enter the model and the number of its version" in unreadable.content.decode()
    assert (unknown.status_code, unreadable.status_code) == (422, 422)
    assert not BatchJob.objects.exists()

    assert (
        client.post("/vision/batch/new", {**typed, "model_version": "detector:1"}).status_code
        == 302
    )
    assert BatchJob.objects.get().version == bench.world.version1


def test_settings_of_claims_are_not_shown_where_no_gpu_is_claimed(bench: Bench) -> None:
    """The cluster of this scene offers GPUs by its device plugin alone."""
    form = page(signed_in(bench.world.member).get("/vision/batch/new"))

    assert "Product of claimed GPUs" not in form.text


def test_a_queue_of_kueue_is_a_field_where_a_cluster_has_kueue(bench: Bench) -> None:
    client = signed_in(bench.world.member)
    without = page(client.get("/vision/batch/new"))
    queues.install(bench.world)
    form = page(client.get("/vision/batch/new"))

    assert "Kueue queue" not in without.text
    assert "Kueue queue" in form.text
    assert "There: serving on eks-test." in form.text, "no queue of another team"


_POLL = {"HX-Request": "true", "HX-Target": "batch-state"}


def test_jobs_that_leave_the_output_empty_write_to_prefixes_of_their_own(bench: Bench) -> None:
    client = signed_in(bench.world.member)
    form = client.get("/vision/batch/new")
    typed = {
        "model_version": "detector:1",
        "input": f"s3://{bench.bucket}/{IN}rows.jsonl",
        "gpus": "eks-test g5.xlarge nvidia.com/gpu",
        "capacity": "on-demand",
        "workers": "1",
        "requests": "4",
        "hours": "2",
        "error_limit": "0",
        "cpu": "2",
        "memory": "8Gi",
    }

    for name in ("monday", "tuesday"):
        client.post("/vision/batch/new", {**typed, "name": name})
    without_input = client.post(
        "/vision/batch/new", {**typed, "name": "x", "input": "", "output": ""}
    )

    # Nothing is read that nobody put there.
    assert form.context["form"]["input"].value() is None
    assert [(job.name, job.output) for job in BatchJob.objects.order_by("pk")] == [
        ("monday", f"s3://{bench.bucket}/batch/vision/scores/monday/"),
        ("tuesday", f"s3://{bench.bucket}/batch/vision/scores/tuesday/"),
    ]
    assert without_input.status_code == 422


def test_an_open_page_gets_downloads_and_buttons_of_a_job_that_ends(bench: Bench) -> None:
    bench.put_rows(500)
    job = bench.running()
    client = signed_in(bench.world.member)
    running = client.get("/vision/batch/scores?page=1&state=running", headers=_POLL)
    bench.work()
    bench.tick(job)
    assert bench.tick(job).state == "succeeded"

    ended = client.get("/vision/batch/scores?page=1&state=running", headers=_POLL)
    again = client.get("/vision/batch/scores?page=1&state=succeeded", headers=_POLL)

    assert (running.status_code, "Download" in page(running).text) == (200, False)
    assert (ended.status_code, ended.headers["HX-Refresh"]) == (204, "true")
    assert (again.status_code, "part-00000.jsonl" in page(again).text) == (286, True)
    assert "Cancel job" not in page(client.get("/vision/batch/scores")).text
