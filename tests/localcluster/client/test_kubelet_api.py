"""Logs of pods as an API server asks a kubelet for them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from slipway_localcluster.client.kubelet_api import KubeletApi
from slipway_localcluster.controllers.pod_runner import PODS_DIRECTORY, directory_name
from slipway_localcluster.kinds import POD
from slipway_localcluster.store import Store
from tests.cluster.certificates import Authority, KeyPair

_LOG = "/containerLogs/vision/one/triton"


@dataclass(frozen=True)
class Kubelet:
    url: str
    authority: Authority
    serving_authority: Path
    store: Store
    folder: Path

    def client(self, *, group: str = "system:masters") -> httpx.Client:
        return self.client_with(self.authority.sign("somebody", group=group))

    def client_with(self, pair: KeyPair | None) -> httpx.Client:
        context = ssl.create_default_context(cafile=str(self.serving_authority))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return httpx.Client(base_url=self.url, verify=context, timeout=10)

    def get(self, path: str) -> tuple[int, str]:
        with self.client() as client:
            answer = client.get(path)
        return answer.status_code, answer.text


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    store = Store(tmp_path / "store.sqlite3")
    spec = {"containers": [{"name": "triton"}, {"name": "late"}]}
    pod = store.create(POD, {"metadata": {"name": "one", "namespace": "vision"}, "spec": spec})
    folder = tmp_path / PODS_DIRECTORY / directory_name(pod)
    folder.mkdir(parents=True)
    (folder / "triton.log").write_text("loading\nready\nserving\n")
    authority = Authority(tmp_path / "pki")
    server = KubeletApi(store, tmp_path, authority.path.read_text())
    server.start()
    url = f"https://127.0.0.1:{server.port}"
    yield Kubelet(url, authority, tmp_path / "kubelet-tls" / "ca.crt", store, folder)
    server.stop()


def test_a_log_is_read_whole_or_from_its_end(kubelet: Kubelet) -> None:
    assert kubelet.get(_LOG) == (200, "loading\nready\nserving\n")
    assert kubelet.get(f"{_LOG}?tailLines=2") == (200, "ready\nserving\n")
    assert kubelet.get(f"{_LOG}?tailLines=0") == (200, "")
    assert kubelet.get(f"{_LOG}?tailLines=2&limitBytes=7") == (200, "ready\ns")


def test_lines_have_the_times_at_which_their_log_grew(kubelet: Kubelet) -> None:
    (kubelet.folder / "triton.log.times").write_text("8 1767323045.5\n14 1767323046\n")
    log = kubelet.folder / "triton.log"
    os.utime(log, (1767323047, 1767323047))

    loading, ready, serving = "02T03:04:05.500000", "02T03:04:06.000000", "02T03:04:07.000000"
    assert kubelet.get(f"{_LOG}?timestamps=true") == (
        200,
        f"2026-01-{loading}000Z loading\n2026-01-{ready}000Z ready\n2026-01-{serving}000Z serving\n",
    )
    assert kubelet.get(f"{_LOG}?sinceTime=2026-01-02T03:04:06Z") == (200, "ready\nserving\n")
    assert kubelet.get(f"{_LOG}?sinceSeconds=60") == (200, "")


def test_the_run_before_has_a_log_of_its_own(kubelet: Kubelet) -> None:
    missing = 'previous terminated container "triton" in pod "one" not found'
    assert kubelet.get(f"{_LOG}?previous=true") == (400, missing)

    (kubelet.folder / "triton.previous.log").write_text("failed\n")

    assert kubelet.get(f"{_LOG}?previous=true") == (200, "failed\n")


def test_a_followed_log_goes_on_until_the_pod_ends(kubelet: Kubelet) -> None:
    with kubelet.client() as client, client.stream("GET", f"{_LOG}?follow=true&tailLines=1") as log:
        lines = log.iter_lines()
        assert next(lines) == "serving"
        with (kubelet.folder / "triton.log").open("a") as file:
            file.write("draining\n")
        assert next(lines) == "draining"
        with (kubelet.folder / "triton.log").open("a") as file:
            file.write("end")
        pod = kubelet.store.get(POD, "vision", "one")
        with (kubelet.folder / "triton.log").open("a") as file:
            file.write("ed\n")
        kubelet.store.replace_status(POD, {**pod, "status": {"phase": "Succeeded"}})

        assert list(lines) == ["ended"]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/containerLogs/vision/two/triton", 404, 'pods "two" not found'),
        ("/containerLogs/other/one/triton", 404, 'pods "one" not found'),
        (
            "/containerLogs/vision/one/late",
            400,
            'container "late" in pod "one" is waiting to start',
        ),
        (
            "/containerLogs/vision/one/..%2Ftriton",
            400,
            "container ../triton is not valid for pod one",
        ),
        (f"{_LOG}?tailLines=many", 400, "tailLines: not a number: many"),
        (f"{_LOG}?stream=Stdout", 400, "not supported by this node agent: stream"),
        (
            "/exec/vision/one/triton",
            404,
            "/exec/vision/one/triton is not served by this node agent",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    kubelet: Kubelet, path: str, status: int, message: str
) -> None:
    assert kubelet.get(path) == (status, message)


def test_only_an_api_server_reads(kubelet: Kubelet) -> None:
    """By a certificate of the cluster's authority, and the group of API servers."""
    for group in ("", "system:authenticated"):
        with kubelet.client(group=group) as client:
            answer = client.get(_LOG)
        assert (answer.status_code, answer.text) == (403, "only the API server reads logs")
    with kubelet.client(group="kubeadm:cluster-admins") as client:
        assert client.get(_LOG).status_code == 200


def test_without_a_certificate_of_the_cluster_nothing_is_answered(
    kubelet: Kubelet, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "other").sign("somebody", group="system:masters")
    for pair in (stranger, None):
        with kubelet.client_with(pair) as client, pytest.raises(httpx.TransportError):
            client.get(_LOG)
