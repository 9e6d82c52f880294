"""A real Prometheus that scrapes pods gives the readings that the pods themselves give."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.forms.models import model_to_dict

from fleet.models import Cluster, MetricSample, Pod, ScrapeReading, Workload, WorkloadMinute
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from fleet.telemetry.services import poll
from portal.core import clock
from tests.fixtures.scraped_pods import PODS, ScrapedPods
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node, pod
from tests.fleet.telemetry import test_language_metrics as language

pytestmark = pytest.mark.django_db
EXPOSITIONS = Path(__file__).parents[2] / "portal/monitoring/expositions"


def triton(success: int, *models: str) -> str:
    counted = ("request_success", "count", "exec_count", "request_duration_us")
    lines = [
        f'nv_inference_{name}{{model="{model}",version="1"}} {success * (place + 1)}\n'
        for place, model in enumerate(models or ("detector",))
        for name in counted
    ]
    summary = "".join(
        f'nv_inference_request_summary_us{{model="detector",quantile="{quantile}",version="1"}} {us}\n'
        for quantile, us in (("0.5", 900), ("0.95", 2100.5), ("0.99", "NaN"))
    )
    pending = 'nv_inference_pending_request_count{model="detector",version="1"} 3\n'
    gpus = 'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.25\nnv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 3e9\n'
    return "".join(sorted(lines)) + summary + pending + gpus


def renamed(page: str) -> str:
    """As releases of TensorRT-LLM after 1.2."""
    lines = page.replace("# TYPE ", "# TYPE trtllm_").splitlines(keepends=True)
    return "".join(line if line.startswith("#") else f"trtllm_{line}" for line in lines)


PAGES = {
    "Triton": ((EXPOSITIONS / "triton.txt").read_text(), []),
    "Triton, packed": (triton(7, "detector", "classifier", "stranger"), ["detector", "classifier"]),
    "vLLM": (language.PAGE, []),
    "vLLM, with buckets": ((EXPOSITIONS / "vllm.txt").read_text(), []),
    "vLLM in Triton": (language.BACKEND + language.PAGE, ["chat"]),
    "SGLang": (language.SGLANG_PAGE, []),
    "TensorRT-LLM": (language.TENSORRT_LLM_PAGE, []),
    "TensorRT-LLM, later": (renamed(language.TENSORRT_LLM_PAGE), []),
}


@pytest.fixture(autouse=True)
def running(cluster: Cluster, detector: int, scraped_pods: ScrapedPods) -> None:
    nodes = [node("node-1", gpus=4)]
    pods = [pod(name, scheduled=START - timedelta(hours=1)) for name in PODS]
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(nodes=nodes, pods=pods), at=START)
    Cluster.objects.update(prometheus_url=scraped_pods.url)
    # After what the test before had scraped.
    Pod.objects.update(created_at=clock.now())


def poll_again() -> int:
    """As the poll that is the turn of Prometheus."""
    ScrapeReading.objects.update(next_at=clock.now())
    return poll.poll()


def figures(sample: MetricSample) -> dict[str, Any]:
    return model_to_dict(sample, exclude=["id", "at"])


@pytest.mark.parametrize("server", PAGES)
def test_prometheus_and_the_pod_give_the_same_reading(
    server: str, kube: FakeKube, scraped_pods: ScrapedPods
) -> None:
    page, models = PAGES[server]
    Workload.objects.update(triton_models=models)
    scraped_pods.show({PODS[0]: page, PODS[1]: page})
    kube.pages = dict.fromkeys(PODS, page)

    assert poll.poll() == 2
    assert kube.proxied == []
    through_prometheus = [figures(sample) for sample in MetricSample.objects.order_by("pod")]
    MetricSample.objects.all().delete()
    assert poll.poll(workload_ids=list(Workload.objects.values_list("pk", flat=True))) == 2

    assert through_prometheus == [figures(s) for s in MetricSample.objects.order_by("pod")]
    assert any(through_prometheus[0][name] for name in ("request_success", "first_tokens"))


def test_a_reading_has_the_time_of_its_scrape_and_is_stored_once(
    kube: FakeKube, scraped_pods: ScrapedPods
) -> None:
    scraped_pods.show({PODS[0]: triton(5), PODS[1]: triton(9)})

    poll.poll()
    scraped_pods.show({})
    poll_again()
    stored = MetricSample.objects.count()
    poll_again()

    assert MetricSample.objects.count() == stored, "nothing was scraped since"
    assert stored >= 2
    for name in PODS:
        [up] = scraped_pods.query(f'up{{pod="{name}"}}[1m]')
        scrapes = {round(at, 3) for at, _ in up["values"]}
        of_pod = MetricSample.objects.filter(pod__name=name).values_list("at", flat=True)
        times = [round(at.timestamp(), 3) for at in of_pod]
        assert scrapes.issuperset(times)
        assert len(set(times)) == len(times)


def test_a_restart_loses_no_request_and_a_pod_without_scrapes_is_a_gap(
    kube: FakeKube, scraped_pods: ScrapedPods
) -> None:
    for success in (100, 120, 5, 9):
        scraped_pods.show({PODS[0]: triton(success)})
        poll_again()
    kube.pages = {}
    scraped_pods.show({})
    poll_again()

    counted = WorkloadMinute.objects.values_list("request_success", flat=True)
    assert sum(counted) == 20 + 5 + 4
    assert set(MetricSample.objects.values_list("pod__name", flat=True)) == {PODS[0]}


def test_a_pod_that_prometheus_lacks_is_read_itself(
    kube: FakeKube, scraped_pods: ScrapedPods
) -> None:
    late = pod("detector-r1-late", scheduled=START)
    record.record(
        cluster_id=Cluster.objects.get().pk, changes=ObservedChanges(pods=[late]), at=START
    )
    kube.pages = {"detector-r1-late": triton(3)}
    scraped_pods.show({PODS[0]: triton(5), PODS[1]: triton(9)})

    assert poll.poll() == 2
    assert kube.proxied == [], "which it lacks is known once it was queried"
    assert poll.poll() == 1

    assert [name for _, name, _, _ in kube.proxied] == ["detector-r1-late"]
    reading = ScrapeReading.objects.get()
    late_id = Pod.objects.get(name="detector-r1-late").pk
    assert (reading.pods, reading.direct_pods, reading.problem) == (2, [late_id], "")
