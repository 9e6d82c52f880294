"""Inputs that a file becomes: which shapes leave no doubt, and the request with the values of the file."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from deployments.registry.domain.metadata import version_metadata
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.serving.domain.file_inputs import (
    MAX_JSON_VALUES,
    PictureLayout,
    SoundLayout,
    describe_picture,
    describe_sound,
)
from deployments.serving.domain.request_inputs import (
    InputText,
    RequestInput,
    build_request,
    describe_inputs,
)
from portal.core.definitions import Rejected

RATE = 16_000
_TIMES = "\N{MULTIPLICATION SIGN}"


def inputs_of(
    *tensors: Tensor, rate: int | None = None, max_batch_size: int = 0
) -> tuple[RequestInput, ...]:
    outputs = (Tensor("y", "FP32", (-1, 1)),)
    signature = Signature(inputs=tensors, outputs=outputs, max_batch_size=max_batch_size)
    return describe_inputs(signature, rate)


@pytest.mark.parametrize(
    ("dtype", "dims", "layout"),
    [
        ("FP32", (-1, 3, 224, 320), PictureLayout(320, 224, True, 1)),
        ("FP32", (1, 3, 224, 224), PictureLayout(224, 224, True, 1)),
        ("FP32", (224, 320, 3), PictureLayout(320, 224, False, 1)),
        ("UINT8", (1, 224, 320, 3), PictureLayout(320, 224, False, 255)),
        ("UINT8", (3, 8, 8), PictureLayout(8, 8, True, 255)),
        ("FP32", (1, 3, 1024, 1024), PictureLayout(1024, 1024, True, 1)),
        ("FP32", (1, 3, 1154, 1154), PictureLayout(1154, 1154, True, 1)),
    ],
)
def test_a_picture_becomes_an_input_whose_shape_leaves_no_doubt(
    dtype: str, dims: tuple[int, ...], layout: PictureLayout
) -> None:
    assert describe_picture(dtype, dims) == layout


@pytest.mark.parametrize(
    ("dtype", "dims"),
    [
        ("FP16", (1, 3, 224, 224)),
        ("INT64", (1, 3, 224, 224)),
        ("FP32", (2, 3, 224, 224)),
        ("FP32", (1, 1, 224, 224)),
        ("FP32", (1, 3, -1, -1)),
        ("FP32", (3, 224)),
        ("FP32", (3, 4, 3)),
        ("FP32", (3, 224, 3)),
        ("FP32", (1, 1, 3, 224, 224)),
        ("FP32", (1, 3, 1155, 1155)),
        ("UINT8", (1, 3, 2310, 2310)),
    ],
)
def test_a_shape_that_leaves_doubt_takes_no_picture(dtype: str, dims: tuple[int, ...]) -> None:
    assert describe_picture(dtype, dims) is None


@pytest.mark.parametrize(
    ("dtype", "dims", "layout"),
    [
        ("FP32", (-1, -1), SoundLayout(RATE, 1, True, None, 960_000, 1)),
        ("FP32", (1, 16_000), SoundLayout(RATE, 1, True, 16_000, 960_000, 1)),
        ("FP32", (-1, 1, -1), SoundLayout(RATE, 1, True, None, 960_000, 1)),
        ("INT16", (-1,), SoundLayout(RATE, 1, True, None, 960_000, 32_767)),
        ("FP32", (-1, 2, -1), SoundLayout(RATE, 2, True, None, 960_000, 1)),
        ("FP32", (2, 48_000), SoundLayout(RATE, 2, True, 48_000, 960_000, 1)),
        ("INT16", (-1, 48_000, 2), SoundLayout(RATE, 2, False, 48_000, 960_000, 32_767)),
    ],
)
def test_a_recording_becomes_an_input_whose_shape_leaves_no_doubt(
    dtype: str, dims: tuple[int, ...], layout: SoundLayout
) -> None:
    assert describe_sound(dtype, dims, RATE) == layout


@pytest.mark.parametrize(
    ("dtype", "dims", "rate"),
    [
        ("FP64", (-1, -1), RATE),
        ("INT64", (-1, -1), RATE),
        ("FP32", (-1, -1, -1), RATE),
        ("FP32", (-1, 80, 3000), RATE),
        ("FP32", (2, 1, 128), RATE),
        ("FP32", (-1, 399), RATE),
        ("FP32", (-1, 4_000_001), RATE),
        ("FP32", (-1, -1), 7_999),
        ("FP32", (-1, -1), 96_001),
    ],
)
def test_a_shape_or_rate_that_leaves_doubt_takes_no_recording(
    dtype: str, dims: tuple[int, ...], rate: int
) -> None:
    assert describe_sound(dtype, dims, rate) is None


def test_only_a_stated_rate_makes_an_input_take_recordings() -> None:
    audio, threshold = Tensor("audio", "FP32", (-1, -1)), Tensor("threshold", "FP32", (-1, 1))

    assert [item.file for item in inputs_of(audio)] == [None]
    stated = inputs_of(audio, threshold, rate=RATE)
    assert [type(item.file).__name__ for item in stated] == ["SoundLayout", "NoneType"]


@pytest.mark.parametrize(
    ("metadata", "rate"),
    [
        ({"labels": {"sampling_rate": "16000"}}, 16_000),
        ({"metrics": {"sampling_rate": 22050}}, 22_050),
        ({"metrics": {"sampling_rate": 44100.0}}, 44_100),
        ({"labels": {"sampling_rate": "16 kHz"}}, None),
        ({"labels": {"rate": "16000"}}, None),
        ({}, None),
    ],
)
def test_the_rate_is_read_from_a_custom_field(metadata: dict[str, Any], rate: int | None) -> None:
    assert version_metadata.read_sampling_rate(metadata) == rate


def test_what_is_done_with_a_file_is_said() -> None:
    picture = describe_picture("FP32", (1, 3, 224, 320))
    fixed = describe_sound("INT16", (-1, 48_000), RATE)
    free = describe_sound("FP32", (-1, 2, -1), 44_100)

    assert picture is not None
    assert fixed is not None
    assert free is not None
    assert picture.description == f"Scaled to 320 {_TIMES} 224 in RGB, values 0 to 1."
    assert fixed.description == (
        "Resampled to 16 kHz, mono, values \N{MINUS SIGN}32,768 to 32,767; cut or padded to 3 s."
    )
    assert free.description == (
        "Resampled to 44.1 kHz, stereo, values \N{MINUS SIGN}1 to 1; the first 45.35 s at most."
    )


def test_a_short_file_is_sent_as_json() -> None:
    inputs = inputs_of(Tensor("audio", "FP32", (-1, -1)), rate=RATE)

    built = build_request(inputs, [InputText("", content=struct.pack("<3f", 1, -0.2, 0.518))])

    assert built.binary == b""
    assert json.dumps(built.body["inputs"]) == json.dumps(
        [{"name": "audio", "datatype": "FP32", "shape": [1, 3], "data": [1, -0.2, 0.518]}]
    )


def test_a_large_file_is_sent_as_binary_data_beside_typed_inputs() -> None:
    inputs = inputs_of(
        Tensor("image", "UINT8", (-1, 3, 100, 100)),
        Tensor("threshold", "FP32", (-1, 1)),
        max_batch_size=8,
    )
    content = bytes(range(250)) * 120
    assert len(content) > MAX_JSON_VALUES

    built = build_request(inputs, [InputText("9", content=content), InputText("0.5")])

    assert built.binary == content
    assert built.body["inputs"] == [
        {
            "name": "image",
            "datatype": "UINT8",
            "shape": [1, 3, 100, 100],
            "parameters": {"binary_data_size": 30_000},
        },
        {"name": "threshold", "datatype": "FP32", "shape": [1, 1], "data": [0.5]},
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"abc", "Choose the file again."), (b"abcd", "Enter 150,528 values, not 1.")],
)
def test_content_that_does_not_fill_the_shape_is_refused(content: bytes, reason: str) -> None:
    inputs = inputs_of(Tensor("image", "FP32", (1, 3, 224, 224)))

    with pytest.raises(Rejected) as refusal:
        build_request(inputs, [InputText("", content=content)])

    assert refusal.value.fields == {"input-0": reason}


def test_an_input_too_large_to_be_typed_needs_its_file() -> None:
    inputs = inputs_of(Tensor("image", "FP32", (1, 3, 640, 640)))

    with pytest.raises(Rejected) as refusal:
        build_request(inputs, [InputText("")])

    assert inputs[0].hint == "Too large to be typed."
    assert refusal.value.fields == {"input-0": "Choose a file."}
