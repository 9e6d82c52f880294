"""The token file of one cluster is sent to no address of another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fleet.clusters.services import clusters
from fleet.clusters.services.clusters import ClusterDraft
from fleet.models import Cluster
from portal.accounts.policy import SYSTEM
from portal.core.errors import Invalid

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.SLIPWAY_CLUSTER_CREDENTIALS_DIR = str(tmp_path)
    data = tmp_path / "..2026"
    data.mkdir()
    (data / "token").write_text("secret")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "token").symlink_to("..data/token")
    (tmp_path / "kubeconfig").write_text("clusters: []")
    (tmp_path / "linked").symlink_to("token")
    os.link(data / "token", tmp_path / "hard")
    (tmp_path / "own-token").write_text("another")
    return tmp_path


def draft(name: str, *, token: str = "", kubeconfig: str = "kubeconfig") -> ClusterDraft:
    return ClusterDraft(
        name=name,
        kind="kubeconfig",
        gateway_url=f"https://{name}.example",
        kubeconfig_path=kubeconfig,
        prometheus_url=f"https://prometheus.{name}.example" if token else "",
        prometheus_token_path=token,
    )


@pytest.mark.parametrize(
    ("token", "kubeconfig", "field"),
    [
        ("token", "kubeconfig", "prometheus_token_path"),
        ("./token", "kubeconfig", "prometheus_token_path"),
        ("..data/token", "kubeconfig", "prometheus_token_path"),
        ("..2026/token", "kubeconfig", "prometheus_token_path"),
        ("linked", "kubeconfig", "prometheus_token_path"),
        ("hard", "kubeconfig", "prometheus_token_path"),
        # What lets into the other cluster itself.
        ("kubeconfig", "new", "prometheus_token_path"),
        # Its own kubeconfig is no token either.
        ("new", "new", "prometheus_token_path"),
        ("", "token", "kubeconfig_path"),
    ],
)
def test_a_file_of_another_cluster_is_refused(
    folder: Path, token: str, kubeconfig: str, field: str
) -> None:
    clusters.register(actor=SYSTEM, draft=draft("first", token="token"))

    with pytest.raises(Invalid) as refused:
        clusters.register(actor=SYSTEM, draft=draft("second", token=token, kubeconfig=kubeconfig))

    assert list(refused.value.fields) == [field]
    assert Cluster.objects.get().name == "first"


def test_files_of_its_own_are_accepted_and_may_be_kept(folder: Path) -> None:
    clusters.register(actor=SYSTEM, draft=draft("first", token="token"))
    clusters.register(actor=SYSTEM, draft=draft("second", token="own-token"))

    clusters.register(actor=SYSTEM, draft=draft("first", token="token"))

    assert Cluster.objects.count() == 2
