"""Custom objects that the portal writes, over all engines and options, past the schemas and CEL rules of their kinds.

Runs without Kubernetes, on the API server of custom kinds alone (tests/cluster/custom_kinds.py). On a whole cluster
test_manifests.py sends the same and every other object.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from tests.cluster import custom_kinds
from tests.cluster.custom_kinds import Refused, Store
from tests.cluster.sent_and_stored import dropped_fields
from tests.deployments.manifest_strategies import placed
from tests.deployments.manifests.test_manifests import all_manifests

_EXAMPLES = 5


@pytest.fixture
def store() -> Store:
    found = custom_kinds.store_of_environment()
    if found is None:
        pytest.skip("on a whole cluster test_manifests.py sends these and all others")
    return found


def test_every_custom_object_is_taken_whole(store: Store, journey: Callable[[str], None]) -> None:
    problems: dict[str, str] = {}
    sent: Counter[str] = Counter()
    plurals, seen = store.plurals(), set[str]()

    def check(pair: tuple[ManifestContext, ServedRevision]) -> None:
        drawn, revision = pair
        here = replace(drawn, namespace="team", is_local_cluster=False)
        for manifest in all_manifests(here, revision):
            plural = plurals.get((manifest["apiVersion"].rpartition("/")[0], manifest["kind"]))
            if plural is None:
                continue
            text = json.dumps(manifest, sort_keys=True)
            if text in seen:
                continue
            seen.add(text)
            sent[manifest["kind"]] += 1
            try:
                stored = store.apply(manifest, plural=plural, dry_run=True)
            except Refused as error:
                problems[f"{manifest['kind']}: {error}"] = str(manifest)[:1500]
                continue
            for path in dropped_fields(manifest, stored):
                problems[f"{manifest['kind']} drops {path}"] = str(manifest)[:1500]

    bounds = settings(max_examples=_EXAMPLES, deadline=None, derandomize=True, database=None)
    for engine in serving_spec.ENGINES:
        bounds(given(placed((engine,)))(check))()

    assert problems == {}
    assert {"InferenceService", "HTTPRoute", "ScaledObject", "LLMInferenceService"} <= set(sent)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sent.most_common())
    journey(f"without Kubernetes: {kinds} taken whole by the schemas of their kinds")


_ROUTE: Manifest = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "strict", "namespace": "team"},
}
_SERVICE: Manifest = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "strict", "namespace": "team"},
}


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        ({**_ROUTE, "spec": {"hostnamez": ["a.example"]}}, "hostnamez"),
        ({**_ROUTE, "spec": {"hostnames": "a.example"}}, "hostnames"),
        # A rule in CEL.
        (
            {
                **_ROUTE,
                "spec": {
                    "rules": [
                        {
                            "matches": [{"path": {"type": "PathPrefix", "value": "no-slash"}}],
                        }
                    ]
                },
            },
            "absolute path",
        ),
        ({**_SERVICE, "spec": {"predictor": {"minReplicas": "one"}}}, "minReplicas"),
        ({**_SERVICE, "spec": {"predictorr": {}}}, "predictorr"),
    ],
)
def test_it_is_strict(store: Store, manifest: Manifest, field: str) -> None:
    """What passes here has passed something: unknown fields, wrong types and broken rules are refused."""
    with pytest.raises(Refused, match=field):
        store.apply(manifest, dry_run=True)
