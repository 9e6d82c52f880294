"""The table that the embedded API server is held against says what a real one says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.cluster import build
from tests.fidelity import real_server, table


def test_the_recorded_verdicts_are_those_of_the_real_server(journey: Callable[[str], None]) -> None:
    expected = table.recorded_on(build.CONTROL_PLANE.minor)
    administrator = Path(os.environ["SLIPWAY_TEST_ADMIN_KUBECONFIG"])

    with real_server.connected(administrator) as server:
        # Kinds of other products come with SLIPWAY_CRD_DIR.
        served = [row for row in table.ROWS if server.serves(row)]
        verdicts = {row.name: server.send(row) for row in served}

        changed = [change for change in table.CHANGES if server.serves(change)]
        verdicts |= {change.name: server.change(change) for change in changed}

    # Whether the controller of Jobs has written `ready` by then is chance; the refusal is not.
    below_zero = verdicts["job-status-below-zero"]
    below_zero["fields"] = [field for field in below_zero["fields"] if field != "status.ready"]

    wrong = {name: said for name, said in verdicts.items() if said != expected[name]}
    assert wrong == {}
    assert len(served) >= len(table.ROWS) - 3
    assert len(changed) == len(table.CHANGES)
    refused = [said for said in verdicts.values() if said["status"] != "accepted"]
    journey(
        f"fidelity: {len(verdicts)} objects and changes, {len(refused)} of them refused as recorded"
    )
