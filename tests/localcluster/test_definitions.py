"""CustomResourceDefinitions are parsed from YAML once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from slipway_localcluster.schemas.definitions import read_definition

_TEXT = "spec:\n  versions:\n  - name: v1\n    served: true\n"
_DEFINITION = {"spec": {"versions": [{"name": "v1", "served": True}]}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "slipway" / "crds"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "things.example.com.yaml"
    path.write_text(_TEXT)
    return path


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("parsed")


def test_the_second_time_nothing_is_parsed(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_definition(path) == _DEFINITION
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(yaml, "load", _refuse)

    assert read_definition(path) == _DEFINITION


def test_another_text_is_another_definition(path: Path) -> None:
    read_definition(path)
    path.write_text(_TEXT.replace("v1", "v2"))

    assert read_definition(path)["spec"]["versions"][0]["name"] == "v2"


def test_a_kept_file_that_was_cut_off_is_written_anew(path: Path, cache: Path) -> None:
    read_definition(path)
    (kept,) = cache.iterdir()
    whole = kept.read_text()
    kept.write_text(whole[:10])

    assert read_definition(path) == _DEFINITION
    assert [file.read_text() for file in cache.iterdir()] == [whole]


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(path: Path, cache: Path) -> None:
    cache.parent.write_text("a file")

    assert read_definition(path) == _DEFINITION


def test_what_json_cannot_say_is_read_each_time(path: Path, cache: Path) -> None:
    path.write_text("since: 2026-01-02\n")

    first, second = read_definition(path), read_definition(path)

    assert first == second
    assert str(first["since"]) == "2026-01-02"
    assert not cache.exists()


def test_a_definition_that_is_not_yaml_is_an_error_and_not_kept(path: Path, cache: Path) -> None:
    path.write_text("spec: [")

    with pytest.raises(yaml.YAMLError):
        read_definition(path)
    assert not cache.exists()
