"""What each release of KServe can do: one table, which the probe, the refusals and the document share."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments.spec.domain.engines import KSERVE_ENGINES
from fleet.clusters.domain import kserve_releases
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.capability_descriptions import ENGINE_NEEDS, FEATURE_DESCRIPTIONS
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from tests.fleet.clusters.test_capabilities import controller
from tests.fleet.fakes import FakeKube

DOCUMENT = Path(__file__).parents[3] / "docs" / "kserve-releases.md"
ALPHA = "serving.kserve.io/v1alpha2"


def probed(kube: FakeKube, cluster: Cluster, release: str) -> Capabilities:
    """With every custom resource of KServe, whatever the release."""
    kube.api_groups["serving.kserve.io"] = ["v1beta1", "v1alpha2"]
    kube.served[ALPHA] = ["llminferenceservices", "localmodelcaches", "inferencegraphs"]
    kube.put(controller("kserve", "kserve-controller-manager", f"kserve/controller:{release}"))
    capabilities.probe(cluster_id=cluster.pk)
    return Capabilities.from_json(Cluster.objects.get().capabilities)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("release", "refused"),
    [
        ("v0.15.2", {*KSERVE_ENGINES, "llm-inference-service"}),
        ("v0.16.0", {"llm-inference-service"}),
        ("v0.17.1", {"llm-inference-service"}),
        ("v0.18.0", set()),
        ("v0.20.0-rc1", set()),
        ("v0.21.0", set()),
        ("latest", set()),
    ],
)
def test_engines_are_refused_where_the_release_is_too_old(
    kube: FakeKube, cluster: Cluster, release: str, refused: set[str]
) -> None:
    read = probed(kube, cluster, release)

    assert {name for name in ENGINE_NEEDS if read.offers_engine(name).ok is False} == refused


@pytest.mark.django_db
def test_the_reason_names_the_installed_and_the_needed_release(
    kube: FakeKube, cluster: Cluster
) -> None:
    read = probed(kube, cluster, "v0.17.0")

    assert read.offers_engine("llm-inference-service").why == (
        "KServe 0.17.0 is installed; 0.18 or newer is needed, because earlier releases ignore the "
        "options of vLLM. LLMInferenceService is needed for serving language models with "
        "LLMInferenceService."
    )
    assert read.offers("model-cache").ok is False


def test_the_document_holds_the_table() -> None:
    titles = {name: item.title for name, item in FEATURE_DESCRIPTIONS.items()}

    assert kserve_releases.table(titles) in DOCUMENT.read_text()


@pytest.mark.parametrize(
    ("version", "release"),
    [("v0.20.0", (0, 20)), ("0.16.0-rc0", (0, 16)), ("v1beta1", None), ("", None)],
)
def test_only_a_release_is_read_as_one(version: str, release: tuple[int, int] | None) -> None:
    assert kserve_releases.parse(version) == release


@pytest.mark.parametrize(
    ("version", "is_untested"),
    [
        ("v0.16.0", False),
        (f"v{kserve_releases.format_release(kserve_releases.LATEST_TESTED)}.7", False),
        ("v0.21.0", True),
        ("0.21.0-rc0", True),
        ("v1.0.0", True),
        ("latest", False),
        ("", False),
    ],
)
def test_a_release_newer_than_the_newest_tested_one_is_said_to_be(
    version: str, is_untested: bool
) -> None:
    said = kserve_releases.describe_untested(version)

    assert bool(said) is is_untested
    if said:
        assert said.startswith(f"KServe {version.removeprefix('v')} is installed; ")
