"""Inputs that a file becomes: which shapes leave no doubt that they are a picture or a recording, and its values.

The browser decodes the file (static/js/try_it.js) and sends the values as numbers of the input's type, little-endian
and row by row, as the binary data extension of the Open Inference Protocol has them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain.signatures import ANY, BYTES_OF_DTYPE

# A request with more is sent from one's own code.
MAX_BYTES: Final = 16_000_000
# So many values are still sent and shown as JSON.
MAX_JSON_VALUES: Final = 20_000
# Browsers resample to any of these rates.
SAMPLING_RATES: Final = range(8_000, 96_001)
MAX_SECONDS: Final = 60
# A smaller side is no picture's, and fewer samples are no recording.
_LEAST_SIDE: Final = 8
_LEAST_SAMPLES: Final = 400
_CHANNELS: Final = (1, 2)
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_FORMATS: Final = {"FP32": "f", "UINT8": "B", "INT16": "h"}
_LARGEST_IN_PICTURE: Final = {"FP32": 1, "UINT8": 255}
_LARGEST_IN_SOUND: Final = {"FP32": 1, "INT16": 32_767}


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """How a picture becomes the values of an input: its size, the place of the RGB channels, and the largest value."""

    width: int
    height: int
    has_channels_first: bool
    largest: int

    @property
    def description(self) -> str:
        return f"Scaled to {self.width} {_TIMES} {self.height} in RGB, values 0 to {self.largest}."


@dataclass(frozen=True, slots=True)
class SoundLayout:
    """How a recording becomes the values of an input. `samples` is the fixed number of each channel, None for any up
    to `most_samples`.
    """

    rate: int
    channels: int
    has_channels_first: bool
    samples: int | None
    most_samples: int
    largest: int

    @property
    def description(self) -> str:
        """Say what is done with the file."""
        channels = "mono" if self.channels == 1 else "stereo"
        least = -1 if self.largest == 1 else -self.largest - 1
        values = f"values {least:,} to {self.largest:,}".replace("-", "\N{MINUS SIGN}")
        seconds = f"{(self.samples or self.most_samples) / self.rate:,.4g} s"
        length = f"cut or padded to {seconds}" if self.samples else f"the first {seconds} at most"
        return f"Resampled to {self.rate / 1000:g} kHz, {channels}, {values}; {length}."


FileLayout = PictureLayout | SoundLayout


def describe_file(
    datatype: str, dims: Sequence[int], sampling_rate: int | None
) -> FileLayout | None:
    """Describe how a file becomes an input with these dimensions of requests. None unless the shape leaves no doubt,
    and for a recording unless the version states its sampling rate.
    """
    picture = describe_picture(datatype, dims)
    if picture is not None or sampling_rate is None:
        return picture
    return describe_sound(datatype, dims, sampling_rate)


def describe_picture(datatype: str, dims: Sequence[int]) -> PictureLayout | None:
    """Describe how a picture becomes this input. None unless it is a batch of one, has three channels first or last,
    and a fixed size that a request can carry.
    """
    largest = _LARGEST_IN_PICTURE.get(datatype)
    if largest is None:
        return None
    has_batch = len(dims) == 4 and dims[0] in {ANY, 1}
    item = dims[1:] if has_batch else dims
    if len(item) != 3 or 3 not in {item[0], item[2]}:
        return None
    is_first = item[0] == 3
    height, width = item[1:] if is_first else item[:2]
    if min(height, width) < _LEAST_SIDE or 3 * height * width > _most_values(datatype):
        return None
    return PictureLayout(width, height, is_first, largest)


def describe_sound(datatype: str, dims: Sequence[int], rate: int) -> SoundLayout | None:
    """Describe how a recording becomes this input. None unless it is a batch of one with samples of one channel, or
    with one or two channels before or after their samples.
    """
    largest = _LARGEST_IN_SOUND.get(datatype)
    if largest is None or rate not in SAMPLING_RATES:
        return None
    has_batch = len(dims) > 1 and dims[0] in {ANY, 1}
    item = tuple(dims[1:] if has_batch else dims)
    if len(item) == 1:
        samples, channels, is_first = item[0], 1, True
    elif len(item) == 2 and item[0] in _CHANNELS:
        samples, channels, is_first = item[1], item[0], True
    elif len(item) == 2 and item[1] in _CHANNELS:
        samples, channels, is_first = item[0], item[1], False
    else:
        return None
    most = _most_values(datatype) // channels
    if samples != ANY and not _LEAST_SAMPLES <= samples <= most:
        return None
    return SoundLayout(
        rate=rate,
        channels=channels,
        has_channels_first=is_first,
        samples=None if samples == ANY else samples,
        most_samples=min(MAX_SECONDS * rate, most),
        largest=largest,
    )


def count_values(datatype: str, content: bytes) -> int | None:
    """Count the values that a file became. None for content that is no whole number of them."""
    size = BYTES_OF_DTYPE[datatype]
    return None if datatype not in _FORMATS or len(content) % size else len(content) // size


def read_values(datatype: str, content: bytes) -> list[Any]:
    """Read the values as JSON has them. Floats have the seven digits that theirs are exact to."""
    values = struct.unpack(f"<{count_values(datatype, content)}{_FORMATS[datatype]}", content)
    if datatype != "FP32":
        return list(values)
    return [_write_float(value) for value in values]


def _write_float(value: float) -> int | float:
    rounded = float(f"{value:.7g}") if math.isfinite(value) else 0.0
    return int(rounded) if rounded.is_integer() else rounded


def _most_values(datatype: str) -> int:
    return MAX_BYTES // BYTES_OF_DTYPE[datatype]
