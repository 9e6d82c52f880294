"""Taints and conditions as upstream sets them, and what is read from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.observation.domain import node_health, node_notices
from fleet.observation.domain.node_health import Condition, Taint
from fleet.observation.domain.node_notices import NoticeKind

CASES = json.loads((Path(__file__).parent / "announced_nodes.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["source"] for case in CASES])
def test_what_is_read_of_a_node(case: dict[str, Any]) -> None:
    taints = node_health.read_taints(node_health.extract_taints({"taints": case["taints"]}))
    conditions = node_health.extract_conditions({"conditions": case["conditions"]})

    found = node_notices.list_notices(taints, node_health.read_conditions(conditions))

    read = [[notice.kind.value, notice.title, notice.xid] for notice in found]
    assert sorted(read) == sorted(case["notices"])


def test_a_fault_comes_first_and_says_what_the_number_means() -> None:
    taints = [Taint("karpenter.sh/disrupted", "", "NoSchedule")]
    message = "XID 79 on GPU 0000:00:1e.0"
    conditions = [Condition("AcceleratedHardwareReady", "False", "NvidiaXID79Error", message, None)]

    fault, removal = node_notices.list_notices(taints, conditions)

    assert fault.detail == "GPU has fallen off the bus. XID 79 on GPU 0000:00:1e.0."
    assert fault.source == "AcceleratedHardwareReady"
    assert removal.kind == NoticeKind.REMOVAL


@pytest.mark.parametrize(
    ("message", "xid"),
    [
        ("Xid 120", 120),
        ("XID errors: 63 (row remap)", 63),
        ("NVRM: Xid (PCI:0000:17:00): 31, pid=4242, name=python", 31),
        ("Xid 12345", None),
        ("no xid here", None),
        ("Xid " + "x" * 100_000 + " 79", None),
    ],
)
def test_the_number_is_that_beside_the_word(message: str, xid: int | None) -> None:
    condition = Condition("GPUHealthy", "False", "Unhealthy", message, None)

    (notice,) = node_notices.list_notices([], [condition])

    assert notice.xid == xid


@pytest.mark.parametrize(
    ("type_", "status", "is_healthy"),
    [
        ("GPUHealthy", "True", True),
        ("GPUHealthy", "False", False),
        ("AcceleratorReady", "False", False),
        ("NodeNotReady", "True", False),
        ("MemoryPressure", "True", False),
        ("Ready", "Unknown", None),
    ],
)
def test_what_is_called_ready_or_healthy_is_good_when_true(
    type_: str, status: str, is_healthy: bool | None
) -> None:
    assert Condition(type_, status, "", "", None).is_healthy is is_healthy


@given(
    st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=5),
    st.lists(st.tuples(st.text(), st.sampled_from(["True", "False", "x"]), st.text()), max_size=5),
)
def test_no_taint_or_condition_is_too_odd(
    taints: list[tuple[str, str, str]], conditions: list[tuple[str, str, str]]
) -> None:
    found = node_notices.list_notices(
        [Taint(*taint) for taint in taints],
        [Condition(kind, status, text, text, None) for kind, status, text in conditions],
    )

    assert all(notice.title for notice in found)
    assert len({notice.title for notice in found}) == len(found)
