"""The settings of the placement: each field has one, nobody else knows it, and parts of several are joined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployments.batch.domain.settings import PLACEMENT_FIELDS, BatchSettings
from deployments.spec.domain.placement import catalogue, pod_parts
from deployments.spec.domain.placement.catalogue import SETTINGS, Placement
from deployments.spec.domain.placement.pod_parts import PodContext, PodParts
from deployments.spec.domain.placement.setting import PlacementSetting
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.node_requirements import RequiredCapacity, RequiredLabels
from fleet.clusters.domain.provisioner import NOT_PROBED
from fleet.gpus.domain.tolerations import GPU, Toleration
from portal.core import definitions
from tests.deployments.spec.placement.named_settings import files_naming, names

ROOT = Path(__file__).resolve().parents[4]
_MOST_FILES = 6
_PREFIX = "placement."


def spec_of(**placement: Any) -> ServingSpec:
    return ServingSpec(engine="triton", instance_type="g5.xlarge", placement=Placement(**placement))


def names_of(setting: PlacementSetting) -> str:
    return type(setting).__name__


def test_each_field_belongs_to_one_setting() -> None:
    paths = [path for setting in SETTINGS for path in setting.paths]
    fields = {f"{_PREFIX}{name}" for name in Placement.model_fields}

    assert len(paths) == len(set(paths))
    assert set(paths) == fields | {"instance_type", "gpu_resource", "gpus"}


@pytest.mark.parametrize("setting", SETTINGS, ids=names_of)
def test_a_setting_is_named_in_six_files_at_most(setting: PlacementSetting) -> None:
    fields = tuple(p.removeprefix(_PREFIX) for p in setting.paths if p.startswith(_PREFIX))

    for field in fields:
        files = files_naming((field,), ROOT)
        assert "deployments/spec/domain/placement/catalogue.py" in files
        assert len(files) <= _MOST_FILES, (field, sorted(files))


@pytest.mark.parametrize(
    "source",
    [
        "spec.placement.queue",
        "settings.queue",
        "Placement(queue='a')",
        "placement.replace(queue='a')",
        "field = 'placement.queue'",
        "data['placement_queue']",
        "class Placement(Definition):\n    queue: QueueName = ''",
    ],
)
def test_whoever_names_a_field_is_found(source: str) -> None:
    assert names(("queue",), source)
    assert not names(("node_labels",), source)


def test_who_asks_the_settings_is_not_counted() -> None:
    assert not names(("queue",), "queue = catalogue.write(spec, context).workload_labels['queue']")


def test_the_titles_of_checks_lead_to_fields() -> None:
    fields = definitions.deep_fields_of(ServingSpec)

    assert len(catalogue.TITLES) == sum(len(setting.titles) for setting in SETTINGS)
    for setting in SETTINGS:
        assert set(setting.titles.values()) <= set(setting.paths) <= set(fields)


def test_a_setting_says_which_nodes_it_excludes_and_what_it_writes() -> None:
    class WithoutNodes(PlacementSetting):
        paths = ()

        def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
            return PodParts()

    class WithoutPods(PlacementSetting):
        paths = ()

        def requirements(self, spec: ServingSpec) -> tuple[()]:
            return ()

    with pytest.raises(TypeError, match="requirements"):
        WithoutNodes()  # type: ignore[abstract]  # on purpose
    with pytest.raises(TypeError, match="write"):
        WithoutPods()  # type: ignore[abstract]  # on purpose


@pytest.mark.parametrize(
    ("placement", "requirements"),
    [
        ({}, (RequiredCapacity("on-demand"),)),
        ({"capacity": "any"}, ()),
        (
            {"capacity": "spot", "node_labels": "zone=a, pool=x"},
            (RequiredCapacity("spot"), RequiredLabels((("pool", "x"), ("zone", "a")))),
        ),
        ({"capacity": "any", "tolerations": "reserved:NoSchedule", "queue": "training"}, ()),
    ],
)
def test_nodes_are_excluded_by_what_pods_require(
    placement: dict[str, Any], requirements: tuple[Any, ...]
) -> None:
    assert catalogue.requirements_of(spec_of(**placement)) == requirements


def test_pods_tolerate_what_all_settings_say() -> None:
    spec = spec_of(capacity="spot", tolerations="reserved=batch:NoSchedule")

    assert catalogue.tolerations_of(spec, [("karpenter.sh/capacity-type", "spot")]) == (
        GPU,
        Toleration("karpenter.sh/capacity-type", "NoSchedule", "spot"),
        Toleration("reserved", "NoSchedule", "batch"),
    )
    assert catalogue.tolerations_of(spec_of(capacity="any")) == (GPU,)


def test_alternatives_of_two_settings_are_combined_and_each_has_what_is_required() -> None:
    a, b, c, d, e = ({"key": key} for key in "abcde")
    parts = [
        PodParts(alternatives=((a,), (b,)), node_selector={"x": "1"}),
        PodParts(required=(e,), alternatives=((c, d),), node_selector={"y": "2"}),
        PodParts(),
    ]

    joined = pod_parts.join(parts)
    preferring = pod_parts.join([*parts, PodParts(preferred=({"weight": 80},))])

    def terms(one: PodParts) -> list[Any]:
        affinity = one.node_fields["affinity"]["nodeAffinity"]
        required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
        return [term["matchExpressions"] for term in required["nodeSelectorTerms"]]

    assert joined.node_fields["nodeSelector"] == {"x": "1", "y": "2"}
    assert terms(joined) == [[e, a, c, d], [e, b, c, d]]
    assert terms(preferring) == [[e, b, c, d], [e, a, c, d]]
    assert pod_parts.join([]).node_fields == {}


def test_several_types_are_in_the_affinity_and_one_is_in_the_selector() -> None:
    context = PodContext(NOT_PROBED, "detector-r1", {})
    label = "node.kubernetes.io/instance-type"

    one = catalogue.write(spec_of(capacity="any", node_labels="pool=x"), context).node_fields
    two = catalogue.write(
        spec_of(capacity="any", other_instance_types="g6.xlarge"), context
    ).node_fields

    assert one == {"nodeSelector": {label: "g5.xlarge", "pool": "x"}}
    assert set(two) == {"affinity"}
    assert two["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": label, "operator": "In", "values": ["g5.xlarge", "g6.xlarge"]}
                ]
            }
        ]
    }


def test_a_batch_job_has_the_placement_of_its_settings() -> None:
    settings = BatchSettings(instance_type="g5.xlarge", queue="training")

    assert PLACEMENT_FIELDS == (
        "capacity",
        "queue",
        "device_claims",
        "claim_product",
        "claim_memory_gib",
        "claim_tolerations",
    )
    assert settings.placement == Placement(capacity="spot", queue="training", spread_zones=False)


@pytest.mark.parametrize(
    ("placement", "line"),
    [
        ({}, "on-demand, spread across zones"),
        (
            {
                "capacity": "spot",
                "other_instance_types": "g6.xlarge",
                "queue": "training",
                "spread_zones": False,
                "do_not_disrupt": True,
            },
            "spot, also on g6.xlarge, queue training, not disrupted",
        ),
    ],
)
def test_a_placement_is_described_in_one_line(placement: dict[str, Any], line: str) -> None:
    assert catalogue.describe(Placement(**placement)) == line


@pytest.mark.parametrize(
    ("capacity", "nodes"),
    [
        ("on-demand", "on-demand g5.xlarge"),
        ("spot", "spot g5.xlarge"),
        ("any", "spot or on-demand g5.xlarge"),
    ],
)
def test_approvers_read_which_nodes(capacity: Any, nodes: str) -> None:
    assert catalogue.qualify(Placement(capacity=capacity), "g5.xlarge") == nodes
