"""Energy by pod: the queries, judged by Prometheus' own tool on series like dcgm-exporter's, and what is read of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fleet.clusters.domain.prometheus import PrometheusSample, PrometheusUnreachable, QueryResult
from fleet.clusters.services import prometheus
from fleet.models import (
    Cluster,
    EnergyReading,
    Pod,
    SummedDay,
    TeamUsageDay,
    Workload,
    WorkloadDay,
    WorkloadHour,
)
from fleet.telemetry.domain import energy
from fleet.telemetry.domain.energy import PodEnergy
from fleet.telemetry.services import days
from fleet.telemetry.services import energy as service
from portal.core import clock
from tests.fleet.conftest import cluster, vision
from tests.portal.monitoring.promtool import needs_promtool, run

__all__ = ["cluster", "vision"]
HOUR = timedelta(hours=1)
# dcgm-exporter 4.5.3-4.8.2, as Prometheus stores its series with honorLabels.
GPU = 'gpu="0",UUID="GPU-604ac76c",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"'
COUNTER = f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{GPU}"
GAUGE = f"DCGM_FI_DEV_POWER_USAGE{{{GPU}"
A = 'container="kserve-container",namespace="vision",pod="a"}'
B = 'container="kserve-container",namespace="nlp",pod="b"}'
# 500 W: so many millijoules in 30 s.
STEP = 15_000_000
OF_A, OF_B = '{namespace="vision",pod="a"}', '{namespace="nlp",pod="b"}'


def judge(
    folder: Path, series: dict[str, str], energy_of: dict[str, float], minutes_of: dict[str, float]
) -> str:
    """Empty when Prometheus computes exactly these of the hour from 3600 s on."""
    queries = energy.queries(datetime.fromtimestamp(7200, UTC))
    expected = [
        {
            "expr": query,
            "eval_time": "2h10m",
            "exp_samples": [{"labels": k, "value": v} for k, v in values.items()],
        }
        for query, values in zip(queries, (energy_of, minutes_of), strict=True)
    ]
    test = {
        "interval": "30s",
        "input_series": [{"series": k, "values": v} for k, v in series.items()],
        "promql_expr_test": expected,
    }
    file = folder / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}))
    done = run("test", "rules", file)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize(
    ("series", "millijoules", "minutes"),
    [
        pytest.param(
            {COUNTER + "," + A: f"0+{STEP}x300"}, {OF_A: 1.8e9}, {OF_A: 60}, id="a whole GPU"
        ),
        pytest.param(
            {COUNTER + "," + A: f"0+{STEP}x300", COUNTER + "," + B: f"0+{STEP}x300"},
            {OF_A: 0.9e9, OF_B: 0.9e9},
            {OF_A: 30, OF_B: 30},
            id="two pods that share it",
        ),
        pytest.param({GAUGE + "," + A: "300x300"}, {OF_A: 1.08e9}, {OF_A: 60}, id="power only"),
        pytest.param(
            {COUNTER + "," + A: f"0+{STEP}x300", GAUGE + "," + A: "99x300"},
            {OF_A: 1.8e9},
            {OF_A: 60},
            id="the counter before the gauge",
        ),
        pytest.param(
            {
                COUNTER
                + ',pod="exporter",namespace="dcgm",exported_namespace="vision",exported_pod="a"}': f"0+{STEP}x300"
            },
            {
                '{namespace="dcgm",pod="exporter",exported_namespace="vision",exported_pod="a"}': 1.8e9
            },
            {'{namespace="dcgm",pod="exporter",exported_namespace="vision",exported_pod="a"}': 60},
            id="without honorLabels",
        ),
        pytest.param({GAUGE + "," + A: "-5x300"}, {}, {}, id="negative"),
        # Read for the last half hour only: from 1h30m on.
        pytest.param({GAUGE + "," + A: "_x180 300x120"}, {OF_A: 0.558e9}, {OF_A: 31}, id="a gap"),
        pytest.param({COUNTER + "," + A: f"0+{STEP}x100"}, {}, {}, id="ended before the hour"),
    ],
)
def test_what_prometheus_computes(
    tmp_path: Path, series: dict[str, str], millijoules: dict[str, float], minutes: dict[str, float]
) -> None:
    assert judge(tmp_path, series, millijoules, minutes) == ""


@needs_promtool
def test_a_reset_counter_loses_seconds_and_is_never_negative(tmp_path: Path) -> None:
    file = tmp_path / "test.yml"
    of_hour, _ = energy.queries(datetime.fromtimestamp(7200, UTC))
    bounds = f"({of_hour}) > bool 1.7e9 and ({of_hour}) <= bool 1.8e9"
    test = {
        "interval": "30s",
        "input_series": [{"series": COUNTER + "," + A, "values": f"0+{STEP}x180 0+{STEP}x120"}],
        "promql_expr_test": [
            {
                "expr": bounds,
                "eval_time": "2h10m",
                "exp_samples": [{"labels": OF_A, "value": 1}],
            }
        ],
    }
    file.write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}))

    done = run("test", "rules", file)

    assert done.returncode == 0, done.stdout + done.stderr


def sample(
    value: float, pod: str = "a", namespace: str = "vision", **labels: str
) -> PrometheusSample:
    return PrometheusSample(value, {"namespace": namespace, "pod": pod, **labels})


@pytest.mark.parametrize(
    ("millijoules", "minutes", "found"),
    [
        ([sample(1.8e9)], [sample(60)], {("vision", "a"): PodEnergy(1_800_000_000, 3_600_000)}),
        (
            [sample(1.8e9, "x", "dcgm", exported_pod="a", exported_namespace="vision")],
            [sample(60, "x", "dcgm", exported_pod="a", exported_namespace="vision")],
            {("vision", "a"): PodEnergy(1_800_000_000, 3_600_000)},
        ),
        # Two GPUs of a pod.
        (
            [sample(1e9), sample(2e9)],
            [sample(60), sample(60)],
            {("vision", "a"): PodEnergy(3_000_000_000, 7_200_000)},
        ),
        ([sample(1.8e9)], [], {}),
        ([sample(float("nan"))], [sample(60)], {}),
        ([sample(float("inf"))], [sample(60)], {}),
        ([sample(-1.0)], [sample(60)], {}),
        # 10 kW.
        ([sample(3.6e10)], [sample(60)], {}),
        ([sample(1.8e9, pod="")], [sample(60, pod="")], {}),
        ([sample(0.0)], [sample(60)], {("vision", "a"): PodEnergy(0, 3_600_000)}),
    ],
)
def test_what_is_taken_of_the_answers(
    millijoules: list[PrometheusSample],
    minutes: list[PrometheusSample],
    found: dict[Any, PodEnergy],
) -> None:
    assert energy.by_pod(millijoules, minutes) == found


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats()), max_size=6),
    st.lists(st.tuples(st.sampled_from("abc"), st.floats()), max_size=6),
)
def test_no_answer_gives_more_than_a_gpu_can_take(
    millijoules: list[tuple[str, float]], minutes: list[tuple[str, float]]
) -> None:
    found = energy.by_pod(
        [sample(value, pod) for pod, value in millijoules],
        [sample(min(value, 1e6), pod) for pod, value in minutes],
    )

    for one in found.values():
        assert 0 <= one.energy_mj <= 5_000 * one.covered_ms


class Answers:
    """Of Prometheus: what each query gets, or why it gets nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.millijoules: list[PrometheusSample] = [sample(1.8e9, "detector-r1-x")]
        self.minutes: list[PrometheusSample] = [sample(60, "detector-r1-x")]
        self.problem: Exception | None = None
        self.warnings: tuple[str, ...] = ()
        self.asked = 0
        monkeypatch.setattr(prometheus, "query", self.query)

    def query(self, *, cluster_id: int, queries: Any) -> list[Any]:
        self.asked += 1
        if self.problem is not None:
            return [self.problem for _ in queries]
        return [
            QueryResult("vector", tuple(samples), self.warnings)
            for samples in (self.millijoules, self.minutes)
        ]


class Fleet:
    """detector-r1 of vision with one pod since 09:30; it is 12:06."""

    start = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

    def __init__(self, cluster: Cluster, team: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = self.start + 3 * HOUR + timedelta(minutes=6)
        monkeypatch.setattr(clock, "now", lambda: self.at)
        Cluster.objects.update(prometheus_url="http://prometheus:9090", created_at=self.start)
        self.workload = Workload.objects.create(
            cluster=cluster,
            team=team,
            namespace="vision",
            name="detector-r1",
            labels={"deployment": "detector", "revision": "1"},
            created_at=self.start,
        )
        Pod.objects.create(
            cluster=cluster,
            workload=self.workload,
            namespace="vision",
            name="detector-r1-x",
            uid="x",
            phase="Running",
            created_at=self.start + timedelta(minutes=30),
        )

    def kept(self) -> list[tuple[int, int | None, int]]:
        """Hour of the day, millijoules and measured time."""
        rows = WorkloadHour.objects.order_by("start")
        return [(row.start.hour, row.energy_mj, row.energy_ms) for row in rows]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(monkeypatch)


@pytest.fixture
def fleet(cluster: Cluster, vision: Any, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(cluster, vision, monkeypatch)


FULL = (1_800_000_000, 3_600_000)


@pytest.mark.django_db
def test_each_hour_is_read_once_beside_the_readings_of_the_model_server(
    fleet: Fleet, answers: Answers
) -> None:
    WorkloadHour.objects.create(
        workload=fleet.workload, start=fleet.start + HOUR, request_success=7, observed_ms=3_600_000
    )

    assert [hour.hour for hour in service.read_due()] == [9, 10, 11]
    assert service.read_due() == []

    assert fleet.kept() == [(9, *FULL), (10, *FULL), (11, *FULL)]
    kept = WorkloadHour.objects.get(start=fleet.start + HOUR)
    assert (kept.request_success, kept.observed_ms) == (7, 3_600_000)
    added = WorkloadHour.objects.get(start=fleet.start)
    assert (added.request_success, added.observed_ms) == (0, 0), "requests are not known"
    assert answers.asked == 3


@pytest.mark.django_db
def test_an_hour_without_an_answer_is_tried_again_and_then_not_known(
    fleet: Fleet, answers: Answers
) -> None:
    answers.problem = PrometheusUnreachable("no route to host")
    assert service.read_due() == []
    assert answers.asked == 1, "the next hours of this cluster would fail too"
    answers.problem, answers.warnings = None, ("one store is missing",)
    assert service.read_due() == []
    assert not EnergyReading.objects.exists()

    answers.warnings = ()
    fleet.at += timedelta(hours=22)
    read = service.read_due()

    # 09:00 is more than a day ago by now.
    assert len(read) == 6
    assert min(read) == fleet.start + HOUR
    assert fleet.kept()[0] == (10, *FULL)


@pytest.mark.django_db
def test_a_cluster_without_dcgm_has_no_energy_which_is_not_zero(
    fleet: Fleet, answers: Answers
) -> None:
    WorkloadHour.objects.create(workload=fleet.workload, start=fleet.start, request_success=7)
    answers.millijoules, answers.minutes = [], []

    assert len(service.read_due()) == 3

    assert fleet.kept() == [(9, None, 0)]


@pytest.mark.django_db
def test_pods_of_others_and_of_other_times_are_not_counted(fleet: Fleet, answers: Answers) -> None:
    Pod.objects.update(gone_at=fleet.start + timedelta(minutes=50), ended_at=None)
    answers.millijoules += [sample(9e8, "dcgm-exporter-abc", "gpu-operator"), sample(9e8, "job-1")]
    answers.minutes += [sample(60, "dcgm-exporter-abc", "gpu-operator"), sample(60, "job-1")]

    service.read_due()

    assert fleet.kept() == [(9, *FULL)]


@pytest.mark.django_db
def test_days_that_were_summed_up_before_are_summed_up_anew(fleet: Fleet, answers: Answers) -> None:
    day = fleet.start.date()
    WorkloadHour.objects.create(workload=fleet.workload, start=fleet.start, request_success=7)
    fleet.at += timedelta(hours=14)
    assert days.sum_up_finished() == [day]
    assert WorkloadDay.objects.get().energy_mj is None

    service.read_due()

    assert not SummedDay.objects.exists()
    assert days.sum_up_finished() == [day]
    of_workload, of_team = WorkloadDay.objects.get(), TeamUsageDay.objects.get()
    hours = WorkloadHour.objects.exclude(energy_mj=None).count()
    assert hours == 6
    assert of_workload.energy_mj == of_team.energy_mj == hours * FULL[0]
    assert of_workload.energy_ms == hours * FULL[1]
    assert of_workload.request_success == 7
