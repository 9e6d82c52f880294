"""Pods require only labels that the provisioner of their cluster knows: a refused one stops Karpenter for everyone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployments.batch.domain import job as batch_job
from deployments.manifests.domain import revision
from deployments.manifests.domain.image_pull import daemon_set
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Llm, Placement
from fleet.clusters.domain.provisioner import NodeLabels, Provisioner
from tests.contract.conftest import served
from tests.deployments.manifest_strategies import CONTEXT, placed

AUTO_MODE = NodeLabels(Provisioner.AUTO_MODE, has_karpenter=True)
KARPENTER = "karpenter.sh/capacity-type"
NODE_GROUP = "eks.amazonaws.com/capacityType"


def required_labels(value: Any) -> Iterator[str]:
    """Every key that a pod of the objects selects, requires, prefers or tolerates."""
    if isinstance(value, list):
        for item in value:
            yield from required_labels(item)
    elif isinstance(value, dict):
        yield from value.get("nodeSelector") or ()
        for item in value.get("tolerations") or ():
            yield item["key"]
        if {"key", "operator", "values"} <= value.keys():
            yield value["key"]
        for item in value.values():
            yield from required_labels(item)


def terms(labels: NodeLabels, capacity: str, engine: str = "triton") -> list[Any]:
    one = served(engine)
    spec = one.spec.replace(placement=Placement().replace(capacity=capacity))
    if engine in serving_spec.LLM_ENGINES:
        spec = spec.replace(llm=Llm(hugging_face_id="org/model"))
    made = revision.build_own(replace(CONTEXT, node_labels=labels), replace(one, spec=spec))
    return list(_terms(made))


def _terms(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _terms(item)
    elif isinstance(value, dict):
        for term in value.get("nodeSelectorTerms") or ():
            yield [(one["key"], one["operator"], one["values"]) for one in term["matchExpressions"]]
        for item in value.values():
            yield from _terms(item)


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_in_auto_mode_only_the_label_of_karpenter_is_required(engine: str) -> None:
    assert terms(AUTO_MODE, "on-demand", engine) == [[(KARPENTER, "NotIn", ["spot"])]]
    assert terms(AUTO_MODE, "spot", engine) == [[(KARPENTER, "In", ["spot"])]]
    assert terms(AUTO_MODE, "any", engine) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(given_one=placed(), capacity=st.sampled_from(["on-demand", "spot", "any"]))
def test_no_object_of_any_setting_names_a_label_of_node_groups(
    given_one: tuple[ManifestContext, ServedRevision], capacity: str
) -> None:
    context, one = given_one
    placement = one.spec.placement.replace(capacity=capacity)
    one = replace(one, spec=one.spec.replace(placement=placement))
    context = replace(context, node_labels=AUTO_MODE)

    made = [*revision.build_shared(context, one), *revision.build_own(context, one)]
    made.append(daemon_set(context, one))

    names = set(required_labels(made))
    assert NODE_GROUP not in names
    assert not AUTO_MODE.problem_with(sorted(names))


def test_spot_nodes_of_node_groups_are_kept_out_without_their_label() -> None:
    mixed = replace(AUTO_MODE, has_other_spot_nodes=True)

    assert terms(mixed, "on-demand") == [[(KARPENTER, "In", ["on-demand", "reserved"])]]
    assert terms(mixed, "spot") == [[(KARPENTER, "In", ["spot"])]]


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        (Provisioner.GKE, "cloud.google.com/gke-spot", "true"),
        (Provisioner.AKS, "kubernetes.azure.com/scalesetpriority", "spot"),
    ],
)
def test_other_clouds_have_labels_of_their_own(name: Provisioner, key: str, value: str) -> None:
    labels = NodeLabels(name)

    assert terms(labels, "on-demand") == [[(key, "NotIn", [value])]]
    assert terms(labels, "spot") == [[(key, "In", [value])]]


def test_what_was_not_probed_is_written_as_before() -> None:
    assert terms(NodeLabels(), "on-demand") == [
        [(KARPENTER, "NotIn", ["spot"]), (NODE_GROUP, "NotIn", ["SPOT"])]
    ]


def test_batch_jobs_require_the_same_labels() -> None:
    one = served("triton")
    one = replace(one, spec=one.spec.replace(placement=Placement(capacity="spot")))

    pod = batch_job.pod(
        replace(CONTEXT, node_labels=AUTO_MODE), one, name="job", text="", plan={"a": 1}
    )

    assert NODE_GROUP not in set(required_labels(pod))
    assert list(_terms(pod)) == [[(KARPENTER, "In", ["spot"])]]
