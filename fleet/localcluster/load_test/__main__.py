"""Load a model repository in the local Triton and send it requests.

The folder has `models/` (the repository, which is rewritten in place) and `requests/`: bodies in Triton's
binary form, named NUMBER-HEADERBYTES, alternatives of which one has to be answered. The result is one
line of JSON on stdout: outcome and detail; load_seconds and memory_mib of a model that loaded;
first_ms, warm_ms and outputs (name, datatype and shape) of one that answered.

The program ends within its time limit, with everything that it started, and also when its caller dies.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fleet.localcluster.load_test import confinement


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--memory-mib", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args(arguments)
    # Before any library can start a thread: a process with threads keeps its namespaces.
    confinement.isolate(memory_mib=options.memory_mib, seconds=options.seconds)
    print(json.dumps(_run(options)))  # noqa: T201  the result


def _run(options: argparse.Namespace) -> dict[str, Any]:
    from fleet.localcluster.load_test import trial  # noqa: PLC0415  after the isolation

    limits = trial.Limits(memory_mib=options.memory_mib, seconds=options.seconds)
    return trial.run(options.folder, options.model, limits)


if __name__ == "__main__":
    main()
