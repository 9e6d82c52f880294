"""The content decides the format: files that begin as others do, and zip archives by their members."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile

import pytest

from deployments.registry.domain.artifacts import archives, zip_names
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.scanning.verdicts import ScanOutcome
from deployments.registry.services.scans import scanning
from deployments.registry.services.scans.scanning import ScanRequest
from tests.artifacts import MemoryArtifact


def detected(name: str, body: bytes) -> str:
    return catalogue.detect(MemoryArtifact({name: body}, {name: len(body)})).format.key


def safetensors_of(header_bytes: int) -> bytes:
    """A valid file whose header has exactly that length."""
    row = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    header = json.dumps(row).encode().ljust(header_bytes)
    return struct.pack("<Q", len(header)) + header + bytes(8)


def zip_of(*names: str, comment: bytes = b"") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), b"content")
        archive.comment = comment
    return out.getvalue()


@pytest.mark.parametrize(
    "body", [b"no model at all", zip_of("a.npy", "b.npy")], ids=["bytes", "zip"]
)
def test_all_formats_together_read_the_same_bytes_once(body: bytes) -> None:
    reads: list[tuple[str, int, int]] = []

    class Recording(MemoryArtifact):
        def read(self, path: str, start: int, count: int) -> bytes:
            reads.append((path, start, count))
            return super().read(path, start, count)

    catalogue.detect(Recording({"model.bin": body}, {"model.bin": len(body)}))

    assert ("model.bin", 0, len(body)) in reads
    assert len(reads) == len(set(reads))


@pytest.mark.parametrize("protocol", range(6))
def test_safetensors_whose_length_begins_as_a_pickle_is_safetensors(protocol: int) -> None:
    body = safetensors_of(0x80 + (protocol << 8))
    assert body[:2] == bytes([0x80, protocol])

    assert detected("model.safetensors", body) == "safetensors"
    assert detected("model.bin", body) == "safetensors"
    (scan,) = scanning.scan(
        ScanRequest(MemoryArtifact({"m.safetensors": body}, {"m.safetensors": len(body)}))
    ).files
    assert scan.outcome is ScanOutcome.CLEAN


def test_a_pickle_that_begins_as_safetensors_is_still_scanned() -> None:
    """The first eight bytes are a length, and the string of the pickle is a header."""
    header = b'{"a":{"b":1}}'
    text = b"\0" + header
    call = b"\x8c\x08builtins\x8c\x04exec\x93\x8c\x04pass\x85R."
    body = b"\x80\x02X" + struct.pack("<I", len(text)) + text + b"0" + call
    length = int.from_bytes(body[:8], "little")
    assert length > len(body), "not a length that the file can have"

    assert detected("model.safetensors", body) == "pickle"
    crafted = b"\x80\x02X" + struct.pack("<I", 0x0E) + b"\0" + header + b"0" + call
    for content in (body, crafted):
        (scan,) = scanning.scan(
            ScanRequest(MemoryArtifact({"m.safetensors": content}, {"m.safetensors": len(content)}))
        ).files
        assert scan.outcome is ScanOutcome.CODE


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("m/data.pkl", "m/byteorder", "m/data/0", "m/version"), "pytorch"),
        (("metadata.json", "config.json", "model.weights.h5"), "keras"),
        (("MAR-INF/MANIFEST.json", "model.pt", "handler.py", "constants.pkl"), "torchserve"),
        (("m/archive_format", "m/byteorder", "m/data/weights/w"), "pt2"),
        (("a.npy", "b.npy"), "numpy"),
        (("model.onnx", "notes.txt"), "zip"),
    ],
)
def test_a_zip_archive_is_what_its_members_make_it(names: tuple[str, ...], kind: str) -> None:
    for comment in (b"", b"PK\x05\x06 said the comment"):
        body = zip_of(*names, comment=comment)
        assert detected("model.onnx", body) == kind
    artifact = MemoryArtifact({"m": zip_of(*names)}, {"m": len(zip_of(*names))})
    assert archives.is_additional({"main": "m"}, artifact) == (kind == "zip")


def test_an_archive_of_zip64_is_read() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("m/data.pkl", b"x")
    body = bytearray(out.getvalue())
    end = body.rfind(b"PK\x05\x06")
    length, offset = struct.unpack_from("<II", body, end + 12)
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, length, offset)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
    struct.pack_into("<II", body, end + 12, 0xFFFFFFFF, 0xFFFFFFFF)
    body[end:end] = record + locator

    assert detected("m.pt", bytes(body)) == "pytorch"
    assert detected("m.pt", bytes(body[end:])) == "pickle", "named as PyTorch names its pickles"


def test_damaged_archives_are_refused_and_never_break_the_detection() -> None:
    body = zip_of("m/data.pkl", "m/version", "m/data/0")
    chance = random.Random(5)
    for _ in range(300):
        damaged = bytearray(body[: chance.randrange(5, len(body) + 1)])
        for _ in range(chance.randrange(4)):
            damaged[chance.randrange(4, len(damaged))] = chance.randrange(256)
        artifact = MemoryArtifact({"m": bytes(damaged)}, {"m": len(damaged)})

        assert catalogue.detect(artifact).format.key in ("pytorch", "zip")
        assert len(zip_names.read(artifact, "m")) <= 3


CHECKPOINT = b'{"architecture": "LlamaForCausalLM", "mapping": {"tp_size": 2}}'
ENGINE = b'{"version": "0.17.0", "pretrained_config": {"architecture": "LlamaForCausalLM"}}'
HUB = b'{"architectures": ["LlamaForCausalLM"]}'


@pytest.mark.parametrize(
    ("config", "weights", "kind"),
    [
        (CHECKPOINT, "rank0.safetensors", "tensorrt_llm_checkpoint"),
        (ENGINE, "rank0.engine", "tensorrt_llm_engine"),
        (HUB, "model.safetensors", "hugging_face"),
        (CHECKPOINT, "rank0.bin", "unknown_folder"),
        (b"{}", "rank0.engine", "unknown_folder"),
    ],
)
def test_folders_of_tensorrt_llm_are_named_and_refused(
    config: bytes, weights: str, kind: str
) -> None:
    for folder in ("", "llama/"):
        files = {f"{folder}config.json": config, f"{folder}{weights}": safetensors_of(64)}
        artifact = MemoryArtifact(files, {path: len(body) for path, body in files.items()})
        detected_format = catalogue.detect(artifact).format
        assert detected_format.key == kind
        assert detected_format.is_accepted == (kind == "hugging_face")


def test_a_pickle_is_listed_as_what_is_served_of_it() -> None:
    names = catalogue.servable_names()

    assert "pickle" not in names
    assert "forest of scikit-learn (joblib or pickle, after a release)" in names
