"""Record what a real API server says to each row: `python -m tests.fidelity KUBECONFIG`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fidelity import real_server, table

if __name__ == "__main__":
    with real_server.connected(Path(sys.argv[1])) as server:
        table.write({row.name: server.send(row) for row in table.ROWS})
        changes = {change.name: server.change(change) for change in table.CHANGES}
        table.write(changes, table.RECORDED_CHANGES)
