"""Names that Kubernetes would refuse are refused with a name that it takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.spec.domain import kubernetes_names

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("", "Enter a deployment name"),
        ("Detector", "'detector'"),
        ("my detector", "'my-detector'"),
        ("1st", "'st'"),
        ("detector-", "'detector'"),
        ("det.ector", "'det-ector'"),
        ("détecteur", "letters, digits"),
        ("detector-r2", "Remove '-r2'"),
        ("x" * 31, "Shorten it to"),
    ],
)
def test_a_bad_name_is_refused_with_its_fix(name: str, hint: str) -> None:
    assert hint in kubernetes_names.problem_with(name, namespace="vision")


@given(
    st.text(alphabet="abcz09-AZ_. é", max_size=40),
    st.from_regex(r"[a-z]([-a-z0-9]{0,30}[a-z0-9])?", fullmatch=True),
)
def test_whatever_is_accepted_makes_only_legal_names(name: str, namespace: str) -> None:
    if kubernetes_names.problem_with(name, namespace=namespace):
        return

    workload = kubernetes_names.workload_name(name, 9999)

    for made in (workload, f"{workload}-predictor", f"{workload}-predictor-{namespace}"):
        assert _LABEL.fullmatch(made), made


def test_a_name_that_fills_the_host_of_kserve_is_taken_and_a_longer_one_names_that_host() -> None:
    namespace = "n" * 32

    assert kubernetes_names.problem_with("x" * 14, namespace=namespace) == ""
    assert kubernetes_names.problem_with("x" * 15, namespace=namespace) == (
        f"'{'x' * 15}' has 15 characters. Shorten it to 14: Kubernetes allows 63 for "
        f"{'x' * 15}-r1-predictor-{namespace}, the name of a host that KServe makes."
    )
