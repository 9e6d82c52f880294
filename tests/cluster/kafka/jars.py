"""Apache Kafka's published jars, fetched once by Maven into the cache of the builds."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.cluster import build

_POM = Path(__file__).with_name("pom.xml")
_SECONDS = 300


class Unavailable(Exception):
    """This machine cannot run Kafka."""


def folder() -> Path:
    """Raises Unavailable without Java or Maven, and where Maven cannot fetch them."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed.")
    cache = build.cache_folder()
    place = cache / f"kafka-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]}"
    with build.locked(cache / "kafka.lock"):
        if not place.is_dir():
            _fetch(place)
    return place


def _fetch(place: Path) -> None:
    """The folder appears when it is complete."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="kafka-") as name:
        partial = Path(name) / "jars"
        command = ["mvn", "-q", "-B", f"--file={_POM}", "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"Maven did not fetch Kafka within {_SECONDS} s.") from error
        if done.returncode:
            raise Unavailable(f"Maven cannot fetch Kafka: {done.stdout[-300:]}")
        partial.replace(place)
