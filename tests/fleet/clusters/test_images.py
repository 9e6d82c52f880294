"""Which images pods may run: entries of the platform's list, and similar names that do not match."""

from __future__ import annotations

import pytest

from fleet.clusters.domain import images

_DIGEST = "sha256:" + "ab" * 32
_OTHER = "sha256:" + "cd" * 32
_LIST = (
    "nvcr.io/nvidia/tritonserver",
    "kserve/*",
    "registry.example:5000/team/*",
    "ghcr.io/org/pinned@sha256",
    f"ghcr.io/org/one@{_DIGEST}",
)


@pytest.mark.parametrize(
    "image",
    [
        "nvcr.io/nvidia/tritonserver",
        "nvcr.io/nvidia/tritonserver:26.07-py3",
        f"nvcr.io/nvidia/tritonserver:26.07-py3@{_DIGEST}",
        "NVCR.io/nvidia/tritonserver:26.07-py3",
        "kserve/storage-initializer:v0.20.0",
        "docker.io/kserve/art-explainer",
        "registry.example:5000/team/a/b:1",
        f"ghcr.io/org/pinned:1@{_DIGEST}",
        f"ghcr.io/org/one@{_DIGEST}",
    ],
)
def test_what_the_list_names_is_allowed(image: str) -> None:
    assert images.is_allowed(image, _LIST)


@pytest.mark.parametrize(
    "image",
    [
        "",
        "evil.example/miner",
        "evil.example/kserve/storage-initializer",
        "evil.example/nvcr.io/nvidia/tritonserver",
        "kserve",
        "kserve-evil/x",
        "library/kserve",
        "nvcr.io/nvidia/tritonserver-evil:1",
        "nvcr.io/nvidia/tritonserver/evil:1",
        "nvcr.io/nvidia/../../evil/tritonserver",
        "kserve/../evil/x",
        "kserve/.hidden",
        "kserve/x:",
        "kserve/x@",
        "kserve/x@sha256:12",
        "kserve/x y",
        "kserve/x\n",
        "registry.example/team/a",
        "registry.example:5001/team/a",
        "ghcr.io/org/pinned:1",
        f"ghcr.io/org/one@{_OTHER}",
        f"evil.example/org/one@{_DIGEST}",
        "kserve/" + "x" * 300,
    ],
)
def test_similar_names_do_not_match(image: str) -> None:
    assert not images.is_allowed(image, _LIST)


def test_an_empty_list_allows_nothing() -> None:
    assert not images.is_allowed("nvcr.io/nvidia/tritonserver", ())


@pytest.mark.parametrize("entry", [*_LIST, "registry.example/*", "vllm/vllm-openai", "ubuntu"])
def test_entries_of_the_four_forms_are_taken(entry: str) -> None:
    assert images.entry_problem(entry) == ""


@pytest.mark.parametrize(
    "entry", ["*", "/*", "a/b:1", "a//b", "a/*/b", "A/b", "a/b@md5", "a/b@sha256:12", "-", "a b"]
)
def test_other_entries_are_refused_by_name(entry: str) -> None:
    assert images.entry_problem(entry).startswith(f"{entry}: ")
