"""The command that fills a shared volume: really run by a shell, with real locks and renames."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import (
    AdditionalModelFiles,
    Manifest,
    ServedFile,
    ServedRevision,
)
from deployments.manifests.domain.model_files import digest_check, download, model_volume
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected
from slipway_localcluster.controllers import digest_check as emulated_check
from slipway_localcluster.controllers import model_volume as emulated
from tests.deployments.manifests.test_manifests import CONTEXT
from tests.waiting import PATIENCE_SECONDS, wait_for

MODEL = {"detector/1/model.onnx": b"weights", "detector/config.pbtxt": b"config"}
FIRST = {"detector/configs/slipway-0123456789abcdef.pbtxt": b"settings"}
SECOND = {"detector/configs/slipway-fedcba9876543210.pbtxt": b"others"}
VOLUME = {"model_cache": "volume", "volume_claim": "models"}
# Takes the place of KServe's entry point, of which the image is not here: copies from a folder.
_ENTRY = """#!{python}
import pathlib, sys, time
bucket = pathlib.Path({bucket!r})
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1::2]) + chr(10))
time.sleep({seconds})
for uri, target in zip(sys.argv[1::2], sys.argv[2::2]):
    prefix = uri.removeprefix("s3://b/")
    for path in sorted(bucket.rglob("*")):
        key = path.relative_to(bucket).as_posix()
        if path.is_file() and key.startswith(prefix):
            name = key.removeprefix(prefix) or path.name
            (pathlib.Path(target) / name).parent.mkdir(parents=True, exist_ok=True)
            (pathlib.Path(target) / name).write_bytes(path.read_bytes())
"""


class World:
    """A bucket and a volume, and pods that start one after the other or together."""

    def __init__(self, root: Path) -> None:
        self.bucket, self.volume, self.log = root / "bucket", root / "volume", root / "log"
        self.volume.mkdir(parents=True)
        self.log.touch()
        self.entry = root / "entry"
        self.set_seconds(0)

    def set_seconds(self, seconds: float) -> None:
        self.entry.write_text(
            _ENTRY.format(
                python=sys.executable, bucket=str(self.bucket), log=str(self.log), seconds=seconds
            )
        )
        self.entry.chmod(0o755)

    def upload(self, files: dict[str, bytes]) -> None:
        for path, body in files.items():
            (self.bucket / "p" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bucket / "p" / path).write_bytes(body)

    @property
    def downloads(self) -> list[str]:
        return self.log.read_text().splitlines()

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.volume.iterdir() if path.suffix != ".lock")

    def begin(self, served: ServedRevision) -> subprocess.Popen[str]:
        container = initializer_of(served)
        command = [*container["command"][:-1], str(self.entry), *container["args"]]
        env = {item["name"]: item["value"] for item in container["env"] if "value" in item}
        return subprocess.Popen(
            command,
            env={"PATH": os.environ["PATH"], **env, model_volume.VOLUME: str(self.volume)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, served: ServedRevision) -> tuple[int, str]:
        process = self.begin(served)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, output


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def served_of(files: dict[str, bytes], engine: str = "triton", **spec: Any) -> ServedRevision:
    recorded = tuple(
        ServedFile(path, hashlib.sha256(body).hexdigest()) for path, body in files.items()
    )
    data = {"instance_type": "g5.xlarge", "engine": engine, "storage": VOLUME, **spec}
    made = ServingSpec.from_json(data)
    return ServedRevision(1, "detector", "detector:1", "ab" * 32, "s3://b/p/", made, files=recorded)


def initializer_of(served: ServedRevision) -> dict[str, Any]:
    (container,) = download.containers(CONTEXT, served)
    return container


def copy_of(served: ServedRevision) -> str:
    return str(download.server_mount(served)["subPath"])


def test_the_second_pod_downloads_nothing(world: World) -> None:
    world.upload(MODEL)
    served = served_of(MODEL)
    copy = copy_of(served)

    first, second = world.run(served), world.run(served)

    assert first == (0, f"{copy} was downloaded to the volume\n")
    assert second == (0, f"{copy} is on the volume: nothing is downloaded\n")
    assert world.downloads == ["s3://b/p/"]
    assert world.names == [copy, f"{copy}.files"]
    assert (world.volume / copy / "detector/1/model.onnx").read_bytes() == b"weights"
    assert (world.volume / f"{copy}.files").read_text() == (
        "6 detector/config.pbtxt\n7 detector/1/model.onnx\n"
    )


def test_pods_that_start_together_download_once(world: World) -> None:
    world.upload(MODEL)
    world.set_seconds(0.5)
    served = served_of(MODEL)

    pods = [world.begin(served) for _ in range(4)]
    outputs = [pod.communicate(timeout=PATIENCE_SECONDS)[0] for pod in pods]

    assert [pod.returncode for pod in pods] == [0, 0, 0, 0]
    assert sorted(output.rpartition(" ")[2] for output in outputs) == [
        "downloaded\n",
        "downloaded\n",
        "downloaded\n",
        "volume\n",
    ]
    assert world.downloads == ["s3://b/p/"]


def test_a_pod_that_dies_leaves_nothing_that_others_take_for_the_model(world: World) -> None:
    world.upload(MODEL)
    world.set_seconds(20)
    served = served_of(MODEL)
    dying = world.begin(served)
    wait_for("begin of the download", lambda: world.downloads)
    partial = world.names
    # The whole group, as a container dies.
    subprocess.run(["pkill", "-9", "-P", str(dying.pid)], check=True)
    dying.kill()
    dying.wait()
    world.set_seconds(0)

    assert [name.startswith(f".{copy_of(served)}.partial.") for name in partial] == [True]
    assert world.run(served)[0] == 0
    assert world.names == [copy_of(served), f"{copy_of(served)}.files"]


def test_bytes_that_differ_from_the_record_never_reach_the_name(world: World) -> None:
    world.upload({**MODEL, "detector/1/model.onnx": b"Weights"})
    served = served_of(MODEL)

    code, output = world.run(served)

    assert code == 1
    assert "detector/1/model.onnx: FAILED" in output
    assert world.names == []


def test_a_damaged_copy_is_downloaded_again(world: World) -> None:
    world.upload(MODEL)
    served = served_of(MODEL)
    world.run(served)
    (world.volume / copy_of(served) / "detector/1/model.onnx").write_bytes(b"half")

    assert world.run(served) == (0, f"{copy_of(served)} was downloaded to the volume\n")
    assert world.run(served)[1].endswith("nothing is downloaded\n")
    assert (world.volume / copy_of(served) / "detector/1/model.onnx").read_bytes() == b"weights"
    assert world.names == [copy_of(served), f"{copy_of(served)}.files"]


def test_a_changed_setting_downloads_its_configuration_only(world: World) -> None:
    world.upload({**MODEL, **FIRST})
    one, two = served_of({**MODEL, **FIRST}), served_of({**MODEL, **SECOND})
    world.run(one)
    world.upload(SECOND)

    assert copy_of(one) == copy_of(two)
    assert world.run(two) == (0, f"{copy_of(one)} is on the volume: nothing is downloaded\n")
    assert world.run(one)[0] == 0
    assert world.downloads == ["s3://b/p/", f"s3://b/p/{next(iter(SECOND))}"]
    assert (world.volume / copy_of(one) / next(iter(SECOND))).read_bytes() == b"others"


def test_a_changed_configuration_on_the_volume_is_refused(world: World) -> None:
    world.upload({**MODEL, **FIRST})
    served = served_of({**MODEL, **FIRST})
    world.run(served)
    (world.volume / copy_of(served) / next(iter(FIRST))).write_bytes(b"changed")

    code, output = world.run(served)

    assert code == 1
    assert f"{next(iter(FIRST))}: FAILED" in output


def test_each_model_of_multi_model_serving_has_its_own_folder(world: World) -> None:
    world.upload(MODEL)
    other = {"other/1/model.onnx": b"more"}
    world.upload({f"x/{path}": body for path, body in other.items()})
    served = served_of({**MODEL, **other}, additional_models=[{"model": "other", "version": 2}])
    additional = AdditionalModelFiles("other", "other:2", "cd" * 32, "s3://b/p/x/other/")
    served = ServedRevision(
        1,
        "detector",
        "detector:1",
        "ab" * 32,
        "s3://b/p/",
        served.spec,
        additional_models=(additional,),
        files=served.files,
    )

    assert world.run(served)[0] == 0
    assert world.downloads == ["s3://b/p/detector/ s3://b/p/x/other/"]
    assert (world.volume / copy_of(served) / "other/1/model.onnx").read_bytes() == b"more"


def test_weights_of_a_hub_have_no_record_to_compare(world: World) -> None:
    spec = {"llm": {"hugging_face_id": "org/model"}}
    served = served_of({}, "kserve-vllm", **spec)
    container = initializer_of(served)

    assert container["args"] == ["hf://org/model", "."]
    assert digest_check.RECORD not in {item["name"] for item in container["env"]}
    assert world.run(served)[0] == 0
    assert world.run(served)[1].endswith("nothing is downloaded\n")


def test_the_local_cluster_does_the_same_without_a_shell(world: World) -> None:
    served = served_of({**MODEL, **FIRST})
    world.upload({**MODEL, **FIRST})
    container = initializer_of(served)
    env = {item["name"]: item["value"] for item in container["env"] if "value" in item}

    def fetch(uri: str, target: Path) -> int:
        return subprocess.run([str(world.entry), uri, str(target)], check=True).returncode

    first, message = emulated.fill(world.volume, env, container["args"], fetch)
    shell = world.run(served)
    (first / next(iter(FIRST))).unlink()
    _, again = emulated.fill(world.volume, env, container["args"], fetch)
    (world.bucket / "p/detector/1/model.onnx").write_bytes(b"changed")
    (first / "detector/config.pbtxt").unlink()

    assert message == f"{first.name} was downloaded to the volume"
    assert shell == (0, f"{first.name} is on the volume: nothing is downloaded\n")
    assert again == f"{first.name} is on the volume: nothing is downloaded"
    with pytest.raises(emulated_check.FilesDiffer, match=r"detector/1/model\.onnx: FAILED"):
        emulated.fill(world.volume, env, container["args"], fetch)
    assert world.names == [first.name, f"{first.name}.files"]


@pytest.mark.parametrize("engine", ["triton", "kserve-triton"])
def test_the_server_reads_its_own_folder_only(engine: str) -> None:
    served = served_of(MODEL, engine)
    objects = {item["kind"]: item for item in revision.build_own(CONTEXT, served)}
    pod, server = _pod_and_server(objects)
    mount = {"name": "models", "mountPath": "/mnt/models", "readOnly": True}

    assert {**mount, "subPath": copy_of(served)} in server["volumeMounts"]
    assert {
        "name": "models",
        "persistentVolumeClaim": {"claimName": "models"},
    } in pod["volumes"]
    assert [item["name"] for item in pod["initContainers"]] == ["storage-initializer"]
    assert pod["securityContext"]["fsGroup"] == 1000
    assert {"name": "models", "mountPath": "/mnt/volume"} in pod["initContainers"][0][
        "volumeMounts"
    ]


def _pod_and_server(objects: dict[str, Manifest]) -> tuple[dict[str, Any], dict[str, Any]]:
    if "InferenceService" in objects:
        predictor = objects["InferenceService"]["spec"]["predictor"]
        return predictor, predictor["model"]
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


@pytest.mark.parametrize(
    ("spec", "field", "fix"),
    [
        ({"storage": {"model_cache": "volume"}}, "storage.volume_claim", "Enter the claim"),
        ({"storage": {"volume_claim": "models"}}, "storage.volume_claim", "Leave it empty"),
        (
            {
                "engine": "triton-vllm",
                "llm": {"hugging_face_id": "a/b"},
                "storage": VOLUME,
            },
            "storage.model_cache",
            "downloads the weights itself",
        ),
        (
            {"engine": "kserve-vllm", "llm": {"artifact": "pvc://a/b"}, "storage": VOLUME},
            "storage.model_cache",
            "are not downloaded",
        ),
        (
            {"storage": {"model_cache": "cluster"}},
            "storage.model_cache",
            "LocalModelCache needs an InferenceService. Use volume",
        ),
    ],
)
def test_what_no_volume_can_hold_is_refused_at_its_field(
    spec: dict[str, Any], field: str, fix: str
) -> None:
    with pytest.raises(Rejected) as refused:
        ServingSpec.from_json({"engine": "triton", "instance_type": "g5.xlarge", **spec})

    assert list(refused.value.fields) == [field]
    assert fix in refused.value.fields[field]
