"""What is built of KEDA is its published source: whole files are left out, and no other line is ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from tests.cluster import build, go_toolchain
from tests.cluster.go_toolchain import Go
from tests.cluster.keda.artifact import KEDA

_BUILDER = Path("pkg/scaling/scalers_builder.go")
_ADAPTER = Path("cmd/adapter/main.go")
_TYPE = re.compile(r'(?m)^\tcase "([^"]+)":$')


@pytest.fixture(scope="module")
def go() -> Go:
    if build.cached(KEDA) is None:
        pytest.skip(f"KEDA {KEDA.release} was not built: there was no time for it")
    return go_toolchain.find(build.cache_folder())


@pytest.fixture(scope="module")
def narrowed(go: Go) -> Iterator[Path]:
    with KEDA.module(go) as folder:
        yield folder / "keda"


@pytest.fixture(scope="module")
def published(go: Go, narrowed: Path) -> Path:
    where = go.run("list", "-m", "-f", "{{.Dir}}", KEDA.release_of, folder=KEDA.folder)
    return Path(where.strip())


def test_every_file_is_published_as_it_is_or_one_of_our_stand_ins(
    narrowed: Path, published: Path
) -> None:
    stand_ins = KEDA.folder / "stand_ins"
    ours = {path.relative_to(stand_ins) for path in stand_ins.rglob("*.go")}
    files = {path.relative_to(narrowed) for path in narrowed.rglob("*") if path.is_file()}

    assert len(ours) == 4
    assert not [name for name in ours if (published / name).exists()]
    differing = {
        name
        for name in files - ours
        if narrowed.joinpath(name).read_bytes() != _of(published, name)
    }
    assert differing == {_ADAPTER, _BUILDER}


def _of(published: Path, name: Path) -> bytes:
    return (published / name).read_bytes()


def test_of_the_switch_over_triggers_only_cases_are_gone(narrowed: Path, published: Path) -> None:
    removed = _removed(_BUILDER, published, narrowed)

    assert all(re.match(r'\t(case "|\treturn scalers\.New)', line) for line in removed)
    assert set(_TYPE.findall((narrowed / _BUILDER).read_text())) == {
        *("aws-sqs-queue", "cpu", "cron", "kafka", "memory", "prometheus"),
        *("redis", "redis-cluster", "redis-sentinel"),
        *("redis-streams", "redis-cluster-streams", "redis-sentinel-streams"),
    }


def test_of_the_adapter_only_the_server_of_its_own_metrics_is_not_started(
    narrowed: Path, published: Path
) -> None:
    assert _removed(_ADAPTER, published, narrowed) == ["\tRunMetricsServer(ctx)"]


def _removed(name: Path, published: Path, narrowed: Path) -> list[str]:
    """Lines of a file that are gone; nothing else may differ."""
    before, after = ((folder / name).read_text().splitlines() for folder in (published, narrowed))
    removed: list[str] = []
    for change, first, last, *_ in SequenceMatcher(None, before, after, False).get_opcodes():
        assert change in ("equal", "delete")
        if change == "delete":
            removed += before[first:last]
    return removed
