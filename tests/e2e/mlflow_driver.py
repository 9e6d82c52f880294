"""Runs in MLflow's environment: one process for all commands, because each start of MLflow takes ten seconds.

A line of the input is a JSON list: ["register", MODEL, PATH…], or the arguments of the command `mlflow`. A
line of the output is its exit code and what it printed.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence

import mlflow
import onnx
from click.testing import CliRunner
from mlflow.cli import cli


def register(model: str, paths: Sequence[str]) -> None:
    """One version for each file, in this order. MLflow puts the weights into a file beside the graph."""
    for path in paths:
        mlflow.onnx.log_model(
            onnx.load(path), name="model", registered_model_name=model, pip_requirements=[]
        )


def answer(arguments: Sequence[str]) -> tuple[int, str]:
    if arguments[0] == "register":
        register(arguments[1], arguments[2:])
        return 0, ""
    done = CliRunner().invoke(cli, list(arguments))
    failure = "".join(traceback.format_exception(done.exception)) if done.exception else ""
    return done.exit_code, done.output + failure


if __name__ == "__main__":
    # What MLflow and its libraries print must not mix with the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
