from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fleet.kube.domain import quantities
from fleet.observation.domain import pod_requests


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("3920m", "3.92"),
        ("14162Mi", str(14162 * 2**20)),
        # As the kubelet reports memory.
        ("187904819Ki", str(187904819 * 2**10)),
        ("1", "1"),
        ("2k", "2000"),
        (4, "4"),
        ("1e3", "1000"),
        ("1.5E2", "150"),
        ("1E", str(10**18)),
        ("2Ei", str(2 * 2**60)),
        (".5", "0.5"),
        ("-1", "-1"),
    ],
)
def test_quantities_are_exact(text: object, amount: str) -> None:
    assert quantities.parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text", ["many", "", "1K", "1Kib", "1 Ki", "i", "NaN", "Infinity", "1mm", "1_0"]
)
def test_a_word_is_not_a_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantities.parse_quantity(text)


def test_amounts_read_as_people_say_them() -> None:
    assert [quantities.format_cores(n) for n in (0, 500, 1000, 3920, 50_000)] == [
        "0",
        "0.5",
        "1",
        "3.92",
        "50",
    ]
    gib = 1024**3
    assert [quantities.format_gib(n) for n in (0, gib // 2, 400 * gib, 14162 * 2**20)] == [
        "0 Gi",
        "0.5 Gi",
        "400 Gi",
        "13.8 Gi",
    ]


def test_what_is_no_quantity_is_not_known() -> None:
    assert [quantities.millicores(text) for text in ("2", "1500m", "many", "Infinity", "NaN")] == [
        2000,
        1500,
        None,
        None,
        None,
    ]


def _container(cpu: str, memory: str, **fields: Any) -> dict[str, object]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **fields}


def test_pod_requests_its_containers_together_or_its_largest_init_container() -> None:
    small, large = _container("100m", "1Gi"), _container("4", "1Gi")
    containers = [_container("1", "2Gi"), {"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}]
    gib = 1024**3

    assert pod_requests.cpu_and_memory({"containers": containers}) == (2000, 4 * gib)
    with_init = {"containers": containers, "initContainers": [small, large]}
    assert pod_requests.cpu_and_memory(with_init) == (4000, 4 * gib)
    sidecar = {**small, "restartPolicy": "Always"}
    with_sidecar = {"containers": containers, "initContainers": [sidecar, large]}
    assert pod_requests.cpu_and_memory(with_sidecar) == (4100, 5 * gib)
    with_overhead = {"containers": containers, "overhead": {"cpu": "250m", "memory": "1Gi"}}
    assert pod_requests.cpu_and_memory(with_overhead) == (2250, 5 * gib)
    assert pod_requests.cpu_and_memory({}) == (0, 0)
