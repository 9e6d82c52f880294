"""`python -m tests.mutants [--record] [PART OF A NAME …]`: tries mutants and says which test noticed each.

Fails if one is missed. `--record` runs on to the fifth failure and writes down who noticed (caught.json).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.mutants import trial
from tests.mutants.table import MUTANTS

RECORD: Final = Path(__file__).with_name("caught.json")
_MOST_RECORDED: Final = 5


def main(arguments: list[str]) -> int:
    is_recorded = "--record" in arguments
    parts = [argument for argument in arguments if not argument.startswith("--")]
    chosen = [m for m in MUTANTS if not parts or any(part in m.name for part in parts)]
    record: dict[str, list[str]] = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    missed = []
    with tempfile.TemporaryDirectory(prefix="slipway-mutants-") as folder:
        tree = Path(folder)
        trial.copy_tree(tree)
        for number, mutant in enumerate(chosen):
            most = _MOST_RECORDED if is_recorded else 1
            try:
                caught_by = trial.try_mutant(mutant, tree, number=number, most=most).caught_by
            except trial.Refused as refused:
                print(f"refused {refused}", flush=True)
                missed.append(mutant.name)
                continue
            print(f"{'caught' if caught_by else 'MISSED'}  {mutant.name}", flush=True)
            print("".join(f"        {name}\n" for name in caught_by), end="", flush=True)
            if not caught_by:
                missed.append(mutant.name)
            if is_recorded:
                record[mutant.name] = list(caught_by)
                RECORD.write_text(f"{json.dumps(record, indent=1, sort_keys=True)}\n")
    print(f"{len(chosen) - len(missed)} of {len(chosen)} mutants are caught.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
