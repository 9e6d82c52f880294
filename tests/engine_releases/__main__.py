"""`make engines`: add the newest release of each engine to the table, and print what it changed.

`make engines ARGS="0.11.0 0.24.0"` reads the named releases of vLLM instead, also where the table has them.
Nothing of an engine is installed or run: its sources are read.
"""

from __future__ import annotations

import sys
from typing import Final

from tests.engine_releases import index, release_files
from tests.engine_releases.vllm_sources import VllmSources, is_read

_ENGINE: Final = "vllm"


def main() -> None:
    sources = index.list_sources(_ENGINE)
    known = sorted(release_files.list_releases(_ENGINE), key=index.order)
    newest = list(sources)[-1]
    named = sys.argv[1:] or ([] if newest in known else [newest])
    missing = [release for release in named if release not in sources]
    if missing:
        sys.exit(f"The index has no sources of {_ENGINE} {', '.join(missing)}.")
    if not named:
        print(f"{_ENGINE} {newest} is the newest release, and the table has it.")
    for release in sorted(named, key=index.order):
        _add(sources[release])


def _add(file: index.SourceFile) -> None:
    described = VllmSources(index.read_sources(file, is_read)).describe()
    content = {
        "engine": _ENGINE,
        "release": file.release,
        "source": {"file": file.name, "sha256": file.sha256},
        **described,
    }
    path = release_files.path_of(_ENGINE, file.release)
    others = (other for other in release_files.list_releases(_ENGINE) if other != file.release)
    older = [other for other in others if index.order(other) < index.order(file.release)]
    release_files.write(path, content)
    print(f"Wrote {path.relative_to(release_files.REPOSITORY)}.")
    if older:
        before = max(older, key=index.order)
        print(f"{_ENGINE} {file.release}, compared with {before}:")
        previous = release_files.read(release_files.path_of(_ENGINE, before))
        for line in release_files.describe_changes(previous, content):
            print(line)


if __name__ == "__main__":
    main()
