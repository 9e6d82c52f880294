"""`python -m fleet.localcluster.machine_check`: can this machine run Triton? Says what to mend."""

import sys

from fleet.localcluster.controllers import triton


def main() -> int:
    try:
        triton.check_machine()
    except triton.TritonUnavailable as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
