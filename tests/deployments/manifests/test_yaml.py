"""The portal's YAML is PyYAML's, to the byte, whatever a manifest or a live object holds."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.manifests.domain.yaml import by_library, to_yaml
from deployments.manifests.web.yaml_files import ManifestText, manifests_of_text

_texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "yes",
            "null",
            "1",
            "1e3",
            "0x1f",
            "~",
            "",
            " a",
            "a ",
            "a: b",
            "- a",
            "#",
            "a #b",
            "'",
            '"',
        ]
    ),
    st.sampled_from(
        [
            "2026-01-01",
            "a\nb",
            "a\n",
            "\na",
            "a\n\nb\n",
            "a\n b",
            "é\nb",
            "x" * 200,
            "word " * 60,
            'sum(a{b=~"c"})',
            "é",
            "\t",
        ]
    ),
)
_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _texts
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.dictionaries(_texts, _values, max_size=4))
def test_it_writes_what_pyyaml_writes(manifest: dict[str, Any]) -> None:
    text = to_yaml([manifest])

    assert text == by_library(manifest)
    assert yaml.safe_load(text) == manifest


@pytest.mark.parametrize("value", [{}, [], None, True, 0, 1.5, "", "a\nb", [[1]], [{}], [[]]])
def test_unusual_values_are_written_as_by_pyyaml(value: Any) -> None:
    assert to_yaml([{"a": value}]) == by_library({"a": value})


def test_a_shared_part_is_written_in_full_each_time() -> None:
    part = {"cpu": "1"}

    assert "&id" not in to_yaml([{"requests": part, "limits": part}])


def test_kubectl_reads_the_strings_that_were_written(tmp_path: Path) -> None:
    """It takes more texts for numbers than PyYAML does: a digest such as the first one was one."""
    texts = [
        "1234567890123e45",
        "1e3",
        "12E-4",
        "1.",
        ".5",
        "1_0e3",
        "0o17",
        "0x1f",
        "y",
        "N",
        "on",
    ]
    annotations = {f"a{number}": text for number, text in enumerate(texts)}
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": annotations},
    }
    (tmp_path / "manifest.yaml").write_text(to_yaml([manifest]))
    kubectl = Path(sysconfig.get_path("scripts")) / "kubectl"

    done = subprocess.run(
        [kubectl, "label", "--local", "-f", tmp_path / "manifest.yaml", "-o", "json", "x=y"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metadata"]["annotations"] == annotations
    assert yaml.safe_load(to_yaml([manifest])) == manifest


def test_pages_name_the_kinds_of_what_was_written() -> None:
    text = "apiVersion: v1\nkind: Secret\n---\napiVersion: v1\nkind: Service\n"

    shown = manifests_of_text(text)

    assert shown == ManifestText(text=text, count=2, kinds="Secret, Service")
    assert manifests_of_text("") is None
