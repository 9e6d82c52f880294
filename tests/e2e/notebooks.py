"""Run a notebook of the documents as a person would, from top to bottom."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.e2e.demo_process import ROOT


def run_notebook(path: Path, **variables: str) -> str:
    """What its cells printed."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(ROOT)}})
    variables["PYTHONPATH"] = str(ROOT / "client" / "src")
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        client.execute()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
    return "".join(
        output.get("text", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream"
    )
