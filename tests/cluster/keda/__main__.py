"""`python -m tests.cluster.keda`: `go mod tidy` for KEDA's module as it is built, without most scalers."""

from __future__ import annotations

from tests.cluster import go_toolchain
from tests.cluster.build import cache_folder
from tests.cluster.keda.artifact import KEDA, REPLACED


def main() -> None:
    go = go_toolchain.find(cache_folder())
    with KEDA.module(go) as folder:
        go.run("mod", "tidy", folder=folder)
        text = (folder / "go.mod").read_text().replace(REPLACED, "")
        (KEDA.folder / "go.mod").write_text(f"{text.rstrip()}\n")
        sums = {*_own_sums(), *(folder / "go.sum").read_text().splitlines()}
    (KEDA.folder / "go.sum").write_text("".join(f"{line}\n" for line in sorted(sums)))


def _own_sums() -> list[str]:
    """Of KEDA's published module, which tidying the copy would drop."""
    lines = (KEDA.folder / "go.sum").read_text().splitlines()
    return [line for line in lines if line.startswith(f"{KEDA.release_of} {KEDA.release}")]


if __name__ == "__main__":
    main()
