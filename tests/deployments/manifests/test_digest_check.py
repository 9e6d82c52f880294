"""The init container that compares what was downloaded: its command is really run, by a shell."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import ServedFile, ServedRevision
from deployments.manifests.domain.model_files import digest_check
from deployments.spec.domain.serving_spec import ServingSpec
from slipway_localcluster.controllers import digest_check as emulated
from tests.deployments.manifests.test_manifests import CONTEXT

_FILES = {"detector/1/model.onnx": b"weights", "detector/config.pbtxt": b"config"}
_OWN = {"detector/configs/slipway-0123456789abcdef.pbtxt": b"settings"}


def _served(files: dict[str, bytes], **spec: Any) -> ServedRevision:
    names = tuple(
        ServedFile(path, hashlib.sha256(body).hexdigest()) for path, body in files.items()
    )
    made = ServingSpec.from_json({"instance_type": "g5.xlarge", "engine": "triton", **spec})
    return ServedRevision(1, "detector", "detector:1", "ab" * 32, "s3://b/p/", made, files=names)


def _write(root: Path, files: dict[str, bytes]) -> None:
    for path, body in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(body)


def _run(root: Path, record: str) -> tuple[int, list[str]]:
    """As in the pod, but for the place of the volume."""
    done = subprocess.run(
        ["/bin/sh", "-c", digest_check.SCRIPT],
        env={"PATH": "/usr/bin:/bin", "SLIPWAY_MODELS": str(root), "SLIPWAY_DIGESTS": record},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def _emulated(root: Path, record: str) -> list[str]:
    try:
        emulated.compare(root, record)
    except emulated.FilesDiffer as error:
        return str(error).splitlines()
    return []


def _both(root: Path, files: dict[str, bytes]) -> list[str]:
    """The output of the real command, which the local cluster must report too."""
    record = digest_check.record_of(_served(files))
    code, output = _run(root, record)
    assert _emulated(root, record) == output
    assert code == (1 if output else 0)
    return output


def test_matching_files_pass(tmp_path: Path) -> None:
    _write(tmp_path, {**_FILES, **_OWN})

    assert _both(tmp_path, {**_FILES, **_OWN}) == []


def test_settings_of_other_revisions_are_allowed(tmp_path: Path) -> None:
    _write(tmp_path, {**_FILES, **_OWN, "detector/configs/slipway-ffff.pbtxt": b"other"})

    assert _both(tmp_path, {**_FILES, **_OWN}) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"detector/1/model.onnx": b"Weights"}, "detector/1/model.onnx: FAILED"),
        ({"detector/config.pbtxt": b"config "}, "detector/config.pbtxt: FAILED"),
        (
            {"detector/configs/slipway-0123456789abcdef.pbtxt": b"other"},
            "detector/configs/slipway-0123456789abcdef.pbtxt: FAILED",
        ),
        ({"detector/1/model.py": b"import os"}, "detector/1/model.py: not in the record"),
        ({"other/config.pbtxt": b""}, "other/config.pbtxt: not in the record"),
        ({".hidden": b""}, ".hidden: not in the record"),
        ({"detector/1/$(touch x)": b""}, "detector/1/$(touch x): not in the record"),
        (
            {"detector/configs/slipway-0.pbtxt/x": b""},
            "detector/configs/slipway-0.pbtxt/x: not in the record",
        ),
        (
            {"detector/1/configs/slipway-0.pbtxt": b""},
            "detector/1/configs/slipway-0.pbtxt: not in the record",
        ),
        (
            {"detector/configs/other-0.pbtxt": b""},
            "detector/configs/other-0.pbtxt: not in the record",
        ),
    ],
)
def test_a_different_file_is_named(tmp_path: Path, changed: dict[str, bytes], message: str) -> None:
    _write(tmp_path, {**_FILES, **_OWN, **changed})

    assert _both(tmp_path, {**_FILES, **_OWN}) == [message]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    _write(tmp_path, {"detector/config.pbtxt": b"config"})

    assert _both(tmp_path, _FILES) == ["detector/1/model.onnx: FAILED open or read"]


@pytest.mark.parametrize("record", ["", "no digest\n", f"{'ab' * 31}  detector/config.pbtxt\n"])
def test_without_a_record_nothing_passes(tmp_path: Path, record: str) -> None:
    _write(tmp_path, _FILES)

    assert _run(tmp_path, record)[0] != 0
    assert _emulated(tmp_path, record) != []


def _pod(served: ServedRevision) -> Any:
    workload = revision.build_own(CONTEXT, served)[0]
    return workload["spec"]["template"]["spec"]


def test_it_runs_after_the_download_from_the_servers_image_with_a_fixed_command() -> None:
    one, other = _served(_FILES), _served({"x/config.pbtxt": b"y"}, image="registry/triton:1")

    download, check = _pod(one)["initContainers"]
    assert (download["name"], check["name"]) == ("storage-initializer", "digest-check")
    assert check["image"] == _pod(one)["containers"][0]["image"]
    again = _pod(other)["initContainers"][1]
    assert (again["image"], again["command"]) == ("registry/triton:1", check["command"])
    assert check["command"] == ["/bin/sh", "-c", digest_check.SCRIPT]
    env = {item["name"]: item["value"] for item in check["env"]}
    assert env["SLIPWAY_DIGESTS"] == "".join(
        f"{hashlib.sha256(_FILES[path]).hexdigest()}  {path}\n" for path in sorted(_FILES)
    )
    assert check["volumeMounts"][0] == {
        "name": "models",
        "mountPath": "/mnt/models",
        "readOnly": True,
    }
    # With the download, it does not change the resources of the pod.
    assert check["resources"]["limits"] == {"cpu": "1", "memory": "256Mi"}
