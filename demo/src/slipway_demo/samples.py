"""Writes the sample model of the demo: the file-type classifier of the magika wheel, twice.

`filetype.onnx` as it was published, `filetype-int8.onnx` with its weights quantised to 8 bits, and
`filetype.json` that says how bytes become its input and which output is which label.
Run as a program because it needs libraries that nothing else of the demo imports.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path

MODEL, QUANTISED, CONFIGURATION = "filetype.onnx", "filetype-int8.onnx", "filetype.json"
_KEPT = ("beg_size", "end_size", "block_size", "padding_token", "target_labels_space")


def write(folder: Path) -> None:
    """Write the samples unless the last of the three files exists."""
    if (folder / CONFIGURATION).exists():
        return
    source = _file_of_wheel("model.onnx")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, folder / MODEL)
    # Of the copy: the library writes a helper file beside what it reads, and the wheel's folder may
    # be read-only, or be read by another demo at the same moment.
    _quantise(folder / MODEL, folder / QUANTISED)
    configuration = json.loads(_file_of_wheel("config.min.json").read_text())
    kept = {name: configuration[name] for name in _KEPT}
    beside = folder / "filetype.tmp"
    beside.write_text(json.dumps(kept))
    beside.replace(folder / CONFIGURATION)


def _file_of_wheel(name: str) -> Path:
    files = [path for path in distribution("magika").files or () if path.name == name]
    return Path(str(files[0].locate()))


def _quantise(source: Path, target: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415  slow import

    # It advises a preprocessing step that does not change this model.
    logging.disable(logging.WARNING)
    # Without the convolution: its integer kernel runs several times slower than the float one on a
    # CPU, and the latency guard of a canary would rightly refuse to promote it.
    quantize_dynamic(source, target, op_types_to_quantize=["MatMul"], weight_type=QuantType.QInt8)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
