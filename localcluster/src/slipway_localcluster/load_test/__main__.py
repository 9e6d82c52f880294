"""Load a model repository in the local Triton and send it requests.

The folder has `models/` (the repository, which is rewritten in place) and `requests/`: bodies in Triton's
binary form, named NUMBER-HEADERBYTES, alternatives of which one has to be answered. `sample/` may hold more, which
all have to be answered. The result is one line of JSON on stdout: outcome and detail; load_seconds and
memory_mib of a model that loaded; first_ms, warm_ms and outputs (name, datatype and shape) of one that
answered, and sample_answers, the raw outputs to `sample/` in base64.

A failure that may come of too little processor time is tried again, in new namespaces. The program ends
within its time limit, with everything that it started, and also when its caller dies.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway_localcluster.load_test import confinement

_MAX_TRIES = 3


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--memory-mib", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args(arguments)
    confinement.end_with_parent()
    ends_at = time.monotonic() + options.seconds
    result: dict[str, Any] = {"outcome": "starved"}
    for _ in range(_MAX_TRIES):
        if result["outcome"] == "starved":
            result = _run_in_child(options, max(ends_at - time.monotonic(), 1))
    if failure := result.pop("failure", None):
        result["outcome"] = failure
    print(json.dumps(result))  # noqa: T201  the result


def _run_in_child(options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Run the rest in a child, and exit with its code if it fails. A process gets its own namespaces only once."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read_end)
            answer = json.dumps(_run(options, seconds)).encode()
            with os.fdopen(write_end, "wb") as file:
                file.write(answer)
            code = 0
        finally:
            # Nothing may leave a forked child, so its error is printed here.
            if code:
                traceback.print_exc()
            os._exit(code)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        answer = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise SystemExit(f"the process that loads the model ended with {code}")
    result: dict[str, Any] = json.loads(answer)
    return result


def _run(options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    # Before any library can start a thread: a process with threads keeps its namespaces.
    confinement.isolate(memory_mib=options.memory_mib, seconds=seconds)
    from slipway_localcluster.load_test import trial  # noqa: PLC0415  after the isolation

    limits = trial.TrialLimits(memory_mib=options.memory_mib, seconds=seconds)
    return trial.run(options.folder, options.model, limits)


if __name__ == "__main__":
    main()
