"""A model of OpenVINO becomes a version: its XML is read without entities, its weights not at all."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Mapping
from typing import Any

import pytest

from deployments.registry.domain import triton_config
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.not_servable import NotServable
from deployments.registry.domain.openvino import graph, reading
from deployments.registry.domain.signatures import from_json
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments.uploading import Upload
from tests.fixtures import exported

FILES = exported.files_of("openvino")
XML, WEIGHTS = FILES["rows.xml"], FILES["rows.bin"]


def artifact_of(files: Mapping[str, bytes]) -> MemoryArtifact:
    return MemoryArtifact(files, {path: len(body) for path, body in files.items()})


def read(xml: bytes = XML, weights: bytes | None = WEIGHTS) -> dict[str, Any]:
    files = {"rows.xml": xml} | ({} if weights is None else {"rows.bin": weights})
    return reading.read({"main": "rows.xml"}, artifact_of(files))


def test_inputs_and_outputs_are_those_that_openvino_reports() -> None:
    assert read() == {
        "inputs": [
            {"name": "rows", "dtype": "FP32", "dims": [-1, 4]},
            {"name": "scale", "dtype": "FP32", "dims": [-1, 1]},
        ],
        "outputs": [
            {"name": "best", "dtype": "INT64", "dims": [-1, 1]},
            {"name": "scores", "dtype": "FP32", "dims": [-1, 3]},
        ],
        "layers": 18,
        "weights": len(WEIGHTS),
        # 4 x 3 and 3; the other constants are shapes and indices.
        "parameters": 15,
    }


def test_a_place_of_the_weights_counts_once_and_compressed_weights_by_their_bits() -> None:
    wide = XML.replace(
        b'element_type="f32" shape="3" offset="48"', b'element_type="f32" offset="0"'
    )
    assert read(wide.replace(b'offset="0" size="12"', b'offset="0" size="48"'))["parameters"] == 12
    assert read(XML.replace(b'element_type="f32"', b'element_type="u4"'))["parameters"] == 120


@pytest.mark.django_db
def test_the_two_files_become_a_version(verified: Upload) -> None:
    version = verified(
        {"m/rows.xml": XML, "m/rows.bin": WEIGHTS, "m/notes.md": b"# Rows"}, model="rows"
    )

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    assert (version.format, version.vram_estimate_mib) == ("openvino", 0)
    keys = [row["key"].removeprefix(version.repository_prefix) for row in version.laid_out]
    assert keys == ["rows/1/model.bin", "rows/1/model.xml", "rows/config.pbtxt"]
    assert "KIND_CPU" in version.config_pbtxt
    assert "default_model_filename" not in version.config_pbtxt
    signature = from_json(version.signature)
    assert signature.facts["parameter_count"] == 15
    assert triton_config.render(model="rows", signature=signature) == version.config_pbtxt


BILLION = b'<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
EXTERNAL = b'<!DOCTYPE net [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (XML.replace(b"<net ", BILLION + b"<net ", 1), "DOCTYPE or entities"),
        (XML.replace(b"<net ", EXTERNAL + b"<net ", 1), "DOCTYPE or entities"),
        (
            XML.replace(b"<net ", b'<!DOCTYPE net SYSTEM "http://x/y"><net ', 1),
            "DOCTYPE or entities",
        ),
        (XML.replace(b'version="11"', b'version="7"', 1), "IR version “7”"),
        (XML.replace(b'version="opset1"', b'version="extension"', 1), "Layers of “extension”"),
        (XML.replace(b"<dim>4</dim>", b"<dim>-5</dim>", 1), "the dimension “-5”"),
        (XML.replace(b"<dim>4</dim>", b"<dim>99999999999</dim>", 1), "the dimension “99999999999”"),
        (
            XML.replace(b'precision="FP32" names="rows"', b'precision="FP64" names="rows"', 1),
            "“FP64”",
        ),
        (XML.replace(b'names="rows"', b'names=""', 1), "has no name"),
        (
            XML.replace(b'type="Result"', b'type="Other"'),
            "needs outputs with a name each, and has none",
        ),
        (
            XML.replace(b'type="Parameter"', b'type="Other"'),
            "inputs with a name each, and has none",
        ),
        (XML[:2000], "damaged or cut off"),
        (b"<net version='11'>" + b"<a>" * 300, "more than 100 levels"),
        (b"<net name='a' version='11'></net>", "no layers"),
    ],
)
def test_what_cannot_be_served_says_why(xml: bytes, message: str) -> None:
    with pytest.raises(NotServable) as refusal:
        read(xml)

    assert message in str(refusal.value)


def test_weights_that_are_missing_or_cut_off_are_refused() -> None:
    with pytest.raises(NotServable, match=r"rows\.bin, the weights of rows\.xml, is missing"):
        read(weights=None)
    with pytest.raises(NotServable, match=r"rows\.bin is cut off: it has 50 bytes"):
        read(weights=WEIGHTS[:50])
    with pytest.raises(NotServable, match="negative offset"):
        read(re.sub(rb'offset="\d+"', b'offset="-8"', XML, count=1))


def test_a_tensor_has_its_first_name_in_order_and_commas_in_names_are_kept() -> None:
    xml = XML.replace(b'names="rows"', b'names="zz,b\\,a,rows"', 1)

    assert read(xml)["inputs"][0]["name"] == "b,a"
    assert graph.split_names("") == ()


def test_any_damage_is_read_or_refused() -> None:
    chance = random.Random(7)
    for _ in range(150):
        damaged = bytearray(XML[: chance.randrange(1, len(XML) + 1)])
        for _ in range(chance.randrange(5)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with contextlib.suppress(NotServable):
            assert read(bytes(damaged))["inputs"]


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"m.xml": XML}, "openvino"),
        ({"renamed.onnx": XML}, "openvino"),
        ({"m.xml": b"<html></html>", "m.bin": b""}, "unknown_folder"),
        ({"a.xml": XML, "b.xml": XML}, "unknown_folder"),
        ({"m/config.pbtxt": b"", "m/1/model.xml": XML, "m/1/model.bin": WEIGHTS}, "triton"),
    ],
)
def test_the_content_decides(files: dict[str, bytes], kind: str) -> None:
    assert catalogue.detect(artifact_of(files)).format.key == kind
