"""`python -m slipway_localcluster.end_processes --data-dir DIR`: end what a killed cluster left running."""

import argparse
from pathlib import Path

from slipway_localcluster.controllers import processes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    data_dir = parser.parse_args().data_dir
    for record in sorted([*data_dir.glob("pods/*/*.pid"), *data_dir.glob("envoy/*.pid")]):
        processes.end_recorded(record)


if __name__ == "__main__":
    main()
