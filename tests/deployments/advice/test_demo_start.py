"""From an empty demo to its samples: uploaded, verified, requested, approved, served and given a history."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments.models import AdviceItem, ChangeRequest, Deployment, ModelVersion
from deployments.registry.gateways import object_store, sandbox
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from deployments.states import DeploymentState, VersionState
from fleet.costs.services import demo_samples
from fleet.models import Cluster, LedgerRow, Node
from portal.accounts.models import Team
from slipway_demo import sample_deployments as samples
from slipway_demo import sample_start
from tests.deployments import onnx_models, recorded_sandbox
from tests.deployments.advice.demo_cluster import PLACES, Demo
from tests.deployments.world import World

pytestmark = pytest.mark.django_db
_STORE = object_store.store


class Workers:
    """What happens while the program waits: `steps` times, then nothing more."""

    def __init__(self, demo: Demo, steps: int = 20) -> None:
        self.demo = demo
        self.steps = steps
        self.waited = 0

    def work(self, _: float) -> None:
        self.waited += 1
        if self.waited > self.steps:
            return
        world = self.demo.world
        for version in ModelVersion.objects.filter(state=VersionState.VERIFYING):
            verification.advance(version.pk)
        world.work()
        for name in PLACES:
            if ("InferenceService", "samples", f"{name}-r1") in world.cluster.objects:
                world.cluster.make_ready(f"{name}-r1")
                world.reconcile_now(Deployment.objects.get(name=name))
        if Deployment.objects.filter(state=DeploymentState.READY).count() == len(PLACES):
            self.demo.observe()


@pytest.fixture
def demo(world: World, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> Demo:
    monkeypatch.setattr(object_store, "store", _STORE)
    monkeypatch.setattr(sandbox, "run", recorded_sandbox.run)
    Cluster.objects.update(kind="local")
    return Demo(world, serves=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("filetype", "filetype-int8"):
        (tmp_path / f"{name}.onnx").write_bytes(onnx_models.linear())
    (tmp_path / "filetype.json").write_text("{}")
    return tmp_path


def test_a_fresh_demo_gets_its_samples_once(
    demo: Demo, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers(demo)
    monkeypatch.setattr(sample_start, "_pause", workers.work)

    said = sample_start.run(folder)
    again = sample_start.run(folder)

    assert said == "team samples: five deployments with two months of made-up use; see Advice"
    assert again == "team samples has its deployments"
    versions = ModelVersion.objects.filter(model__team__slug="samples").order_by("pk")
    assert [(one.label, one.state) for one in versions] == [
        ("filetype:1", VersionState.READY),
        ("filetype-int8:1", VersionState.READY),
    ]
    assert sorted(Deployment.objects.values_list("team__slug", "name", "state")) == [
        ("samples", name, "ready") for name in sorted(PLACES)
    ]
    approvers = ChangeRequest.objects.filter(team__slug="samples").values_list("state", flat=True)
    assert list(approvers) == ["done"] * len(PLACES)
    assert demo_samples.have_history("samples")
    kinds = set(AdviceItem.objects.values_list("kind", flat=True))
    assert {"fewer-replicas", "idle", "spot", "unused-node"} <= kinds


def test_a_start_that_ended_half_way_is_continued(
    demo: Demo, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sample_start, "_pause", stop)
    with pytest.raises(KeyboardInterrupt):
        sample_start.run(folder)
    states = ModelVersion.objects.filter(model__team__slug="samples").values_list(
        "state", flat=True
    )
    assert set(states) == {VersionState.VERIFYING}
    assert not demo_samples.have_history("samples")

    monkeypatch.setattr(sample_start, "_pause", Workers(demo).work)
    sample_start.run(folder)

    assert ModelVersion.objects.filter(model__team__slug="samples").count() == 2
    assert Deployment.objects.count() == len(PLACES)
    assert demo_samples.have_history("samples")


def test_a_machine_with_gpus_of_its_own_gets_none(demo: Demo, folder: Path) -> None:
    Node.objects.filter(name__startswith="demo-").delete()

    assert sample_start.run(folder) == "none, because this machine has GPUs of its own"

    assert not LedgerRow.objects.exists()
    assert not ModelVersion.objects.filter(model__team__slug="samples").exists()


def test_what_does_not_come_is_named(
    demo: Demo, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_start, "_pause", lambda _: None)
    monkeypatch.setattr(sample_start, "_LONGEST_WAIT_SECONDS", 0)

    with pytest.raises(sample_start.NotMade, match="verified sample models not there after 0 s"):
        sample_start.run(folder)

    assert not Deployment.objects.exists()
    assert Team.objects.filter(slug=samples.TEAM).exists()
