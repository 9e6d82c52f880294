"""Read the release of vLLM from the name of an image."""

from __future__ import annotations

import re
from typing import Final

# Major and minor number.
Release = tuple[int, int]
# The images whose tags are releases of vLLM.
_VLLM_IMAGES: Final = ("vllm-openai", "pytorch-inference-vllm-neuronx")
_TAG: Final = re.compile(r"v?(\d+)\.(\d+)\.\d+([-+.].*)?")


def read_vllm_release(image: str) -> Release | None:
    """Return the release that the image's tag states. None for an image of another name, a tag that states none, and
    an image named by its digest alone.
    """
    repository, _, tag = image.partition("@")[0].rpartition(":")
    match = _TAG.fullmatch(tag)
    if match is None or not repository.rpartition("/")[2].startswith(_VLLM_IMAGES):
        return None
    return int(match[1]), int(match[2])
