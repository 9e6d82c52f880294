"""Run the published FOCUS validator on rows of every kind that the export has.

    python -m tests.fleet.costs.validate_focus PATH/TO/focus-validator [ledger-focus.csv]

The validator (PyPI focus-validator, Python 3.12, `pyarrow<18`) is no dependency of ours: install it in
an environment of its own. Without a file, the rows are those of `SAMPLES`. Prints the rules that fail.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

from fleet.costs.domain import focus
from fleet.costs.domain.focus_columns import COLUMNS
from fleet.costs.domain.results import LedgerEntry

# What the portal offers, in the validator's terms: no commitments, reservations, zones or other currencies.
CRITERIA: Final = (
    "ACCOUNT_NAMING_SUPPORTED",
    "BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED",
    "MULTIPLE_PRICING_CATEGORIES_SUPPORTED",
    "NEGOTIATED_PRICING_SUPPORTED",
    "PUBLIC_PRICE_LIST_SUPPORTED",
    "REGION_SUPPORTED",
    "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED",
    "SUB_ACCOUNT_SUPPORTED",
    "TAGGING_SUPPORTED",
    "UNIT_PRICING_SUPPORTED",
    "USAGE_MEASUREMENT_SUPPORTED",
)
# The validator's model lost the condition of this rule ("when the charge is on an invoice") and of its
# opposite: one of the two fails on any data.
_CONTRADICTED: Final = "InvoiceId-C-005-C"
_AT: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
_HELD: Final = LedgerEntry(
    hour=_AT,
    cluster_name="eks-1",
    node_name="ip-10-0-0-1",
    node_uid="0b1f",
    instance_type="g5.xlarge",
    region="us-east-1",
    kind="allocated",
    team_slug="vision",
    namespace="vision",
    workload_name="detector-r1",
    labels={"deployment": "detector"},
    gpu_milliseconds=1_234_567,
    node_gpu_milliseconds=3_600_000,
    cost_amount=Decimal("0.344999"),
    usd_per_hour_amount=Decimal("1.006000"),
    price_source="list",
    sealed_at=_AT + timedelta(hours=1),
)
_ADJUSTED: Final = replace(
    _HELD,
    kind="adjustment",
    gpu_milliseconds=-100,
    node_gpu_milliseconds=None,
    cost_amount=Decimal("-0.000028"),
)
SAMPLES: Final = (
    _HELD,
    replace(_HELD, kind="idle", team_slug="", namespace="", workload_name="", labels={}),
    replace(_HELD, team_slug="", labels={}),
    replace(_HELD, capacity_type="spot"),
    replace(_HELD, capacity_type="reserved"),
    replace(_HELD, capacity_type="own", region="on-site", instance_type="NVIDIA-L40S"),
    replace(_HELD, usd_per_hour_amount=None, cost_amount=Decimal(0), price_source=""),
    replace(_HELD, sealed_at=None),
    _ADJUSTED,
    replace(_ADJUSTED, sealed_at=_AT + timedelta(days=40)),
)


def main(validator: Path, export: Path | None) -> int:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.csv"
        if export:
            shutil.copyfile(export, data)
        else:
            _write(data)
        _lend_currencies(validator, Path(folder))
        done = subprocess.run(
            [
                str(validator),
                *("--data-file", str(data), "--validate-version", "1.2", "--block-download"),
                *("--focus-dataset", "CostAndUsage", "--output-type", "console"),
                *("--applicability-criteria", ",".join(CRITERIA)),
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    failed = [
        line
        for line in re.findall(r"^❌ (.*)", done.stdout, re.MULTILINE)
        if not line.startswith(_CONTRADICTED)
    ]
    passed = len(re.findall(r"^✅ ", done.stdout, re.MULTILINE))
    print(*failed, f"{passed} rules passed, {len(failed)} failed", sep="\n")
    return 1 if failed or not passed else 0


def _write(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(focus.row(entry) for entry in SAMPLES)


def _lend_currencies(validator: Path, folder: Path) -> None:
    """The validator reads its list of currencies from the working directory."""
    name = "focus_validator/rules/currency_codes.csv"
    source = next(validator.resolve().parent.parent.glob(f"lib/python*/site-packages/{name}"))
    target = folder / name
    target.parent.mkdir(parents=True)
    shutil.copyfile(source, target)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    sys.exit(main(given[0].absolute(), given[1] if len(given) > 1 else None))
