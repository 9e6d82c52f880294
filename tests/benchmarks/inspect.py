"""How much of a language model with 70 billion parameters is read to inspect it.

The folder has the tensors of Llama 3.3 70B in 30 sparse files of 141 GB together. The product's own task
reads it in the real sandbox, through the ranges that the sandbox's parent answers.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import environment
from tests.benchmarks.result import Result
from tests.fixtures import language_models

MOST_MB = 20.0
SHARDS = 30


@dataclass
class CountingArtifact:
    """The files of a folder; `read_bytes` is what was handed to the sandbox."""

    folder: Path
    read_bytes: int = 0
    sizes: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = {path.name: path.stat().st_size for path in sorted(self.folder.iterdir())}

    def read(self, path: str, start: int, count: int) -> bytes:
        with (self.folder / path).open("rb") as file:
            file.seek(start)
            body = file.read(count)
        self.read_bytes += len(body)
        return body


def main() -> Result:
    environment.apply()
    import django

    django.setup()
    from deployments.registry.domain.formats import catalogue
    from deployments.registry.gateways import sandbox
    from deployments.registry.gateways.sandbox_artifact import Access

    with tempfile.TemporaryDirectory(prefix="slipway-inspect-") as name:
        folder = Path(name) / "model"
        language_models.write_sparse(folder, language_models.LARGE, shards=SHARDS)
        artifact = CountingArtifact(folder)
        started = time.perf_counter()
        detected = catalogue.detect(artifact)
        assert detected.format.reading is not None, detected
        outcome = sandbox.run(
            detected.format.reading.task,
            {"main": detected.main, "format": detected.format.key, "model": "chat"},
            limits=sandbox.limits_for(0),
            access=Access(artifact),
        )
        seconds = time.perf_counter() - started
    assert isinstance(outcome, sandbox.Finished), outcome
    facts = outcome.value
    assert facts["parameters"] == 70_553_706_496, facts["parameters"]
    read = artifact.read_bytes / 10**6
    print(
        f"{detected.format.name}: {facts['parameters']:,} parameters, "
        f"{sum(artifact.sizes.values()):,} bytes in {len(artifact.sizes)} files; {read:.2f} MB read "
        f"in {seconds:.2f} s"
    )
    return Result("inspect", round(read, 2), MOST_MB, "MB read")
