"""The table: rows, and what a real API server said to each.

Record it anew with `python -m tests.fidelity KUBECONFIG`, where KUBECONFIG is an administrator's of a
cluster as `make test-cluster` starts it, with SLIPWAY_CRD_DIR.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fidelity import (
    built_in_rows,
    change_rows,
    custom_rows,
    metadata_rows,
    pod_rows,
    request_rows,
    status_rows,
)
from tests.fidelity.change import Change
from tests.fidelity.row import Row

Verdicts = dict[str, Any]

ROWS: tuple[Row, ...] = (*pod_rows.ROWS, *built_in_rows.ROWS, *custom_rows.ROWS)
CHANGES: tuple[Change, ...] = (
    *change_rows.ROWS,
    *request_rows.ROWS,
    *status_rows.ROWS,
    *metadata_rows.ROWS,
)
# Kinds that nothing of the embedded cluster runs: it answers as a cluster without these products.
NOT_SERVED = frozenset({"GRPCRoute", "LLMInferenceService", "ScaledObject", "ServiceMonitor"})
RECORDED = Path(__file__).with_name("verdicts.json")
RECORDED_CHANGES = Path(__file__).with_name("changes.json")
# The two above are of Kubernetes 1.36. What a later release answers differently, by the release that began it.
_SINCE = {(1, 37): Path(__file__).with_name("since_1_37.json")}


def recorded(path: Path = RECORDED) -> Verdicts:
    verdicts: Verdicts = json.loads(path.read_text())
    return verdicts


def recorded_on(release: tuple[int, int]) -> Verdicts:
    """Read what a real API server of this release says to rows and changes."""
    verdicts = {**recorded(), **recorded(RECORDED_CHANGES)}
    for since, path in _SINCE.items():
        verdicts |= recorded(path) if release >= since else {}
    return verdicts


def write(verdicts: Verdicts, path: Path = RECORDED) -> None:
    lines = [f"  {json.dumps(name)}: {json.dumps(verdict)}" for name, verdict in verdicts.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
