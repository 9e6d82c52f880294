"""The cluster that `make test-cluster` started. Nothing here is collected by other runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.keda.fixtures import keda_build, scaled, sqs_server
from tests.cluster.kubectl import Kubectl
from tests.contract import account
from tests.contract.conftest import cluster_id, context, kubeconfig, namespace

__all__ = [
    "cluster_id",
    "context",
    "keda_build",
    "kubeconfig",
    "namespace",
    "scaled",
    "sqs_server",
]

_JOURNEYS = "SLIPWAY_TEST_JOURNEYS"
collect_ignore_glob = [] if _JOURNEYS in os.environ else ["test_*.py"]


@pytest.fixture
def admin() -> Kubectl:
    administrator = account.administrator()
    assert administrator is not None
    return administrator


@pytest.fixture
def journey() -> Callable[[str], None]:
    """Record a journey that went through; the report of the run lists it."""

    def record(description: str) -> None:
        with Path(os.environ[_JOURNEYS]).open("a") as file:
            file.write(f"{description}\n")

    return record
