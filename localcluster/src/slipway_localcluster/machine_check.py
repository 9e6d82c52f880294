"""`python -m slipway_localcluster.machine_check`: can this machine run Triton? Prints the fix if not."""

import sys

from slipway_localcluster.controllers import triton


def main() -> int:
    try:
        triton.check_machine()
    except triton.TritonUnavailable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
