"""`make bench [NAME=…]`: runs one benchmark, or all and prints a table.

A benchmark is a module here with `main() -> Result`; it prints what it compares.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

from tests import benchmarks
from tests.benchmarks.result import Result

_NOT_BENCHMARKS = {
    *(
        "__main__",
        "blocks_twin",
        "kept_client",
        "language_streams",
        "lanes_twin",
        "machine",
        "mlflow_server",
        "percentile_streams",
        "people_scene",
        "fleet_scene",
        "every_page",
        "fleet_scene_history",
        "pages_scene",
        "registry_scene",
        "result",
        "rollout_scenes",
        "rules",
        "scene",
    ),
    *("triton_endpoints", "unequal_load", "waiting", "worlds"),
}


def names() -> list[str]:
    modules = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    return sorted(modules - _NOT_BENCHMARKS)


def run(name: str) -> Result:
    if name not in names():
        sys.exit(f"There is no benchmark {name!r}. There are: {', '.join(names())}.")
    result: Result = importlib.import_module(f"tests.benchmarks.{name}").main()
    return result


def main() -> int:
    if len(sys.argv) > 1:
        result = run(sys.argv[1])
        print(result.to_line())
        return 0 if result.ok else 1
    results = [run(name) for name in names()]
    print(f"\n{'name':<20} {'value':>10} {'bound':>10}  unit")
    for result in results:
        word = "ok" if result.ok else "OVER"
        print(f"{result.name:<20} {result.value:>10} {result.bound:>10}  {result.unit}  {word}")
    for result in results:
        print(result.to_line())
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
