"""Every engine and option of the form, on each release of KServe that the portal works with: its kinds
and its webhooks take the objects whole, or the portal refuses the request first and says why.

A release that is not the one of the run has an API server of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.spec.domain import cluster_support, serving_spec
from deployments.spec.domain.engines import TRITON_ENGINES
from deployments.spec.domain.pod_settings import Network
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain import kserve_releases
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.services import capabilities
from fleet.kube.domain.errors import ClusterError
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients, objects
from fleet.models import Cluster
from portal.core import clock
from portal.core.definitions import Rejected
from tests.cluster import build
from tests.cluster.build import Artifact
from tests.cluster.kubectl import Kubectl
from tests.cluster.running import running
from tests.cluster.sent_and_stored import dropped_fields
from tests.cluster.test_scheduling import pods_of, revision_of
from tests.cluster.waiting import wait_until
from tests.contract import account
from tests.deployments.manifest_strategies import CONTEXT, placed
from tests.deployments.manifests.settings_in_manifests import ARRIVES
from tests.deployments.manifests.test_every_setting import spec_with
from tests.installations import use_same_installation

_EXAMPLES = 25
_OF_KSERVE = (*serving_spec.KSERVE_ENGINES, serving_spec.LLM_SERVICE)
_NAMESPACE = "slipway-releases"
_WEIGHTS = {"llm_hugging_face_id": "org/model"}
# These clusters have no gateway that asks for keys.
_OPEN = {"network_access": "open"}


@dataclass(frozen=True, slots=True)
class Release:
    artifact: Artifact
    admin: Kubectl


@pytest.fixture(scope="module", params=build.KSERVE_RELEASES, ids=lambda made: made.release)
def release(request: pytest.FixtureRequest) -> Iterator[Release]:
    with ExitStack() as stack:
        admin = account.administrator()
        if request.param != build.KSERVE:
            control_plane, older = build.cached(build.CONTROL_PLANE), build.cached(request.param)
            if control_plane is None or older is None:
                pytest.skip(f"{request.param.release} was not built: there was no time for it")
            admin = stack.enter_context(running(control_plane, older)).admin
        assert admin is not None
        admin.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}])
        stack.callback(admin.run, "delete", "namespace", _NAMESPACE, "--wait=false")
        yield Release(request.param, admin)


@pytest.fixture
def cluster(db: None, release: Release) -> Iterator[Cluster]:
    clients.forget()
    use_same_installation()
    yield Cluster.objects.create(
        name="release",
        kind="kubeconfig",
        kubeconfig_path=str(release.admin.kubeconfig),
        gateway_url="http://gateway.example",
        created_at=clock.now(),
    )
    clients.forget()


@dataclass(slots=True)
class Outcome:
    """Of all requests on one release. `refusals`: the portal's reasons, by their number."""

    offered: Capabilities
    client: KubeClient
    requests: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    sent: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)

    def request(self, where: str, spec: ServingSpec, manifests: Iterator[Manifest]) -> None:
        self.requests += 1
        refusal = _refusal(spec, self.offered)
        if refusal:
            self.refusals[refusal] += 1
            return
        for manifest in manifests:
            self._send(where, manifest)

    def _send(self, where: str, manifest: Manifest) -> None:
        text = json.dumps(manifest, sort_keys=True)
        if text in self.sent:
            return
        self.sent.add(text)
        try:
            stored = self.client.apply(manifest, dry_run=True, force=True)
        except ClusterError as error:
            self.problems[f"refuses {manifest['kind']}: {error.message}"] = where
            return
        for path in dropped_fields(manifest, stored):
            self.problems[f"drops {path} of {manifest['kind']}"] = where


def _refusal(spec: ServingSpec, offered: Capabilities) -> str:
    """Why preflight refuses it on the cluster; empty when it does not."""
    missing = [row for row in cluster_support.missing(spec, offered) if row.is_blocking]
    return cluster_support.engine_reason(spec.engine, offered) or " ".join(
        f"{row.path}: {row.message}" for row in missing
    )


def _of_kserve(context: ManifestContext, served: ServedRevision) -> Iterator[Manifest]:
    """The objects that differ by release. The other ones: test_manifests.py."""
    for manifest in [*revision.build_shared(context, served), *revision.build_own(context, served)]:
        if manifest["apiVersion"].startswith("serving.kserve.io/"):
            yield manifest


def _form_requests() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each field of the form with each engine."""
    for name, typed, *_ in ARRIVES:
        for engine in serving_spec.ENGINES:
            weights = _WEIGHTS if engine in serving_spec.LLM_ENGINES else {}
            yield f"{name} with {engine}", {**_OPEN, **weights, **typed, "engine": engine}


def _spec_of(typed: Mapping[str, str]) -> tuple[ServingSpec | None, list[str]]:
    """The spec, or why the portal refuses it whatever the cluster."""
    try:
        return spec_with(typed), []
    except Rejected as error:
        return None, list(error.fields.values())


def test_a_release_takes_whole_what_the_portal_offers_on_it(
    cluster: Cluster, release: Release, journey: Callable[[str], None]
) -> None:
    offered = capabilities.probe(cluster_id=cluster.pk)
    outcome = Outcome(offered, clients.client_for(cluster.pk))
    here = replace(CONTEXT, namespace=_NAMESPACE)

    for where, typed in _form_requests():
        spec, reasons = _spec_of(typed)
        if spec is None:
            assert all(reasons), where
            outcome.requests += 1
            outcome.refusals[" ".join(reasons)] += 1
            continue
        served = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec, size_mib=100)
        outcome.request(where, spec, _of_kserve(here, served))
    for engine in serving_spec.ENGINES:
        _request_drawn(outcome, engine)

    installed = offered.feature("kserve").version
    assert installed.removeprefix("v") == release.artifact.release.removeprefix("v")
    assert {
        f"KServe {installed} {problem}. Refuse it first, in kserve_releases.py": where
        for problem, where in outcome.problems.items()
    } == {}
    refused = outcome.refusals.total()
    assert outcome.sent
    assert refused
    journey(
        f"KServe {installed}: {outcome.requests} requests, {refused} refused first with a reason, "
        f"{len(outcome.sent)} objects of the others accepted whole"
    )


def _request_drawn(outcome: Outcome, engine: str) -> None:
    """Combinations of options."""

    @settings(max_examples=_EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(placed((engine,)))
    def check(pair: tuple[ManifestContext, ServedRevision]) -> None:
        context, drawn = pair
        here = replace(context, namespace=_NAMESPACE, is_local_cluster=False)
        spec = drawn.spec.model_copy(update={"network": Network(access="open")})
        served = replace(drawn, spec=spec)
        outcome.request(f"drawn {spec}", spec, _of_kserve(here, served))

    check()


def test_a_release_makes_pods_of_its_engines_that_restricted_takes(
    cluster: Cluster, release: Release, journey: Callable[[str], None]
) -> None:
    offered = capabilities.probe(cluster_id=cluster.pk)
    engines = [name for name in _OF_KSERVE if offered.offers_engine(name).ok]
    engine_of = {f"engine-{number}": engine for number, engine in enumerate(engines)}
    for name, engine in engine_of.items():
        here = replace(CONTEXT, namespace=_NAMESPACE, deployment=name)
        objects.apply(cluster_id=cluster.pk, manifests=revision_of(here, engine))

    def made() -> dict[str, list[str]]:
        """Names of init containers by the deployment of the pod."""
        return {
            pod["metadata"]["labels"]["slipway.dev/deployment"]: [
                container["name"] for container in pod["spec"]["initContainers"]
            ]
            for pod in pods_of(cluster.pk, _NAMESPACE)
        }

    wait_until(
        lambda: made().keys() >= engine_of.keys(),
        lambda: release.admin.run("get", "events,pods", f"--namespace={_NAMESPACE}"),
    )
    labels = release.admin.get("namespace", _NAMESPACE)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for name, engine in engine_of.items():
        is_compared = engine in TRITON_ENGINES
        expected = ["storage-initializer", *(["digest-check"] if is_compared else [])]
        assert made()[name] == expected, engine
    installed = offered.feature("kserve").version
    journey(f"KServe {installed}: pods of {', '.join(engines)} admitted under restricted")


def test_a_release_restarts_no_pod_for_another_number_of_replicas(
    cluster: Cluster, release: Release, journey: Callable[[str], None]
) -> None:
    """A rollout gives its candidate replicas as its weight grows; the digest of its manifests changes each time."""
    here = replace(CONTEXT, namespace=_NAMESPACE, deployment="grown")
    one = replicated(here, 1)
    grown = replicated(here, 3)

    def template() -> tuple[int, Any]:
        listed = release.admin.get("deployments", f"--namespace={_NAMESPACE}")["items"]
        made = [d["spec"] for d in listed if d["metadata"]["name"] == "grown-r1-predictor"]
        return (made[0]["replicas"], made[0]["template"]) if made else (0, None)

    def why() -> str:
        return release.admin.run("get", "events,deployments,pods", f"--namespace={_NAMESPACE}")

    objects.apply(cluster_id=cluster.pk, manifests=one)
    wait_until(lambda: template()[0] == 1, why)
    before = template()[1]
    objects.apply(cluster_id=cluster.pk, manifests=grown)
    wait_until(lambda: template()[0] == 3, why)

    assert template()[1] == before
    sets = release.admin.get("replicasets", f"--namespace={_NAMESPACE}")["items"]
    assert sum(one["metadata"]["name"].startswith("grown-r1-") for one in sets) == 1
    installed = capabilities.probe(cluster_id=cluster.pk).feature("kserve").version
    journey(f"KServe {installed}: 1 replica became 3, and no pod was replaced")


def replicated(context: ManifestContext, replicas: int) -> list[Manifest]:
    spec = ServingSpec(
        engine=serving_spec.KSERVE_TRITON,
        instance_type="g5.xlarge",
        min_replicas=replicas,
        max_replicas=replicas,
    )
    served = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec, size_mib=100)
    return [*revision.build_shared(context, served), *revision.build_own(context, served)]


def test_every_supported_release_is_run() -> None:
    run = {kserve_releases.parse(made.release) for made in build.KSERVE_RELEASES}

    assert run | build.NOT_RUN == set(kserve_releases.list_supported())
