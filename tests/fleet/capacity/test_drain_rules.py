"""Where a drained node's pods would go: pure, and never onto room that is not there."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from fleet.capacity.domain import drain_preview
from fleet.capacity.domain.drain_preview import Budget, DrainablePod, DrainFit, Hold, OtherNode
from fleet.capacity.domain.node_space import Amounts, NodeRoom
from fleet.kube.domain.label_selectors import LabelSelector

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"


def pod(
    name: str, gpus: int, cpu: int = 0, resource: str = GPU, type_: str | None = "g5.xlarge"
) -> DrainablePod:
    return DrainablePod(
        namespace="vision",
        name=name,
        team_slug="vision",
        deployment="detector",
        labels=(("app", name.partition("-")[0]),),
        gpu_resource=resource,
        size=Amounts(gpus, cpu, 0),
        instance_types=None if type_ is None else tuple(type_.split(" or ")),
    )


def other(
    name: str, gpus: int, cpu: int = 1000, resource: str = GPU, type_: str = "g5.xlarge"
) -> OtherNode:
    whole = Amounts(8, 1000, None)
    return OtherNode(name, type_, resource, NodeRoom(whole, Amounts(gpus, cpu, None)))


def budget(name: str, app: str, allowed: int | None) -> Budget:
    selector = LabelSelector.from_json({"matchLabels": {"app": app}})
    return Budget("vision", name, selector, allowed)


def test_the_largest_pod_gets_the_room_that_it_needs() -> None:
    pods = [pod("a", 1), pod("b", 2), pod("c", 1)]

    preview = drain_preview.preview(pods, [other("n1", 2), other("n2", 1)], [])

    assert [(m.pod.name, m.fit, m.target) for m in preview.pods] == [
        ("a", DrainFit.FITS, "n2"),
        ("b", DrainFit.FITS, "n1"),
        ("c", DrainFit.NO_ROOM, ""),
    ]
    assert (preview.fitting, preview.without_room) == (2, 1)


def test_nodes_of_another_type_are_no_room_and_other_pods_are_not_known() -> None:
    pods = [pod("a", 1), pod("b", 1, type_=None)]

    preview = drain_preview.preview(pods, [other("n1", 8, type_="p5.48xlarge")], [])

    assert [moved.fit for moved in preview.pods] == [DrainFit.NO_ROOM, DrainFit.UNKNOWN]


def test_a_pod_of_several_instance_types_has_room_on_all_of_them() -> None:
    pods = [pod("a-1", 1), pod("b-1", 1, type_="g5.xlarge or g6.xlarge")]

    made = drain_preview.preview(pods, [other("n2", 4, type_="g6.xlarge")], [])

    assert [(moved.fit, moved.target) for moved in made.pods] == [
        (DrainFit.NO_ROOM, ""),
        (DrainFit.FITS, "n2"),
    ]


def test_what_a_budget_does_follows_from_what_it_allows() -> None:
    pods = [pod(f"{app}-{number}", 1) for app in "abcd" for number in range(2)]
    budgets = [
        budget("none", "a", 0),
        budget("some", "b", 1),
        budget("all", "c", 2),
        budget("silent", "d", None),
        budget("elsewhere", "x", 0),
    ]

    preview = drain_preview.preview(pods, [], budgets)

    assert preview.budgets is not None
    assert [(row.budget.name, row.pods, row.hold) for row in preview.budgets] == [
        ("none", 2, Hold.REFUSES),
        ("some", 2, Hold.STEPWISE),
        ("all", 2, Hold.ALLOWS),
        ("silent", 2, Hold.UNKNOWN),
    ]
    assert preview.held is None
    assert drain_preview.preview(pods, [], budgets[:3]).held == 1


def test_two_budgets_of_one_pod_hold_it() -> None:
    budgets = [budget("one", "a", 5), budget("two", "a", 5)]

    preview = drain_preview.preview([pod("a-0", 1)], [], budgets)

    assert preview.budgets is not None
    assert [row.hold for row in preview.budgets] == [Hold.CONFLICTS] * 2
    assert preview.held == 2


def test_the_budgets_of_a_cluster_that_does_not_respond_are_not_known() -> None:
    preview = drain_preview.preview([pod("a-0", 1)], [], None)

    assert preview.budgets is None
    assert preview.held is None


@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 600), st.sampled_from([GPU, MIG])), max_size=12
    ),
    rooms=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1000)), max_size=5),
)
def test_no_node_is_given_more_than_it_has(
    sizes: list[tuple[int, int, str]], rooms: list[tuple[int, int]]
) -> None:
    pods = [pod(f"p{n}", gpus, cpu, name) for n, (gpus, cpu, name) in enumerate(sizes)]
    nodes = [
        other(f"n{n}", gpus, cpu, name)
        for n, (gpus, cpu) in enumerate(rooms)
        for name in (GPU, MIG)
    ]

    preview = drain_preview.preview(pods, nodes, [])

    gpus: dict[tuple[str, str], int] = defaultdict(int)
    cpus: dict[str, int] = defaultdict(int)
    for moved in preview.pods:
        if moved.fit is DrainFit.FITS:
            gpus[moved.target, moved.pod.gpu_resource] += moved.pod.size.gpus
            cpus[moved.target] += moved.pod.size.cpu_millicores or 0
    assert [moved.pod for moved in preview.pods] == pods
    for number, (free, cpu) in enumerate(rooms):
        assert all(gpus[f"n{number}", name] <= free for name in (GPU, MIG))
        assert cpus[f"n{number}"] <= cpu
