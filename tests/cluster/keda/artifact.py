"""KEDA, built from its published module without the scalers that the portal never writes.

All of KEDA needs the client libraries of some sixty products. What is left out is left out as whole files;
what other files call of it are the stand-ins beside `go.mod`, which refuse.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.build import Artifact
from tests.cluster.go_toolchain import Go

MODULE = "github.com/kedacore/keda/v2"
REPLACED = f"\nreplace {MODULE} => ./keda\n"
# What the operator and the metrics adapter are made of.
_PARTS = ("apis", "cmd/operator", "cmd/adapter", "controllers", "pkg", "version")
# The triggers of deployments/manifests/domain/, and those that share their files.
KEPT_SCALERS = frozenset(
    {
        "aws_sqs_queue_scaler.go",
        "cpu_memory_scaler.go",
        "cron_scaler.go",
        "kafka_scaler.go",
        "prometheus_scaler.go",
        "redis_scaler.go",
        "redis_streams_scaler.go",
    }
)
# Clients of Azure, Google Cloud and Vault, and parts of scalers that are left out.
_LEFT_OUT = (
    "pkg/eventemitter/azure_event_grid_topic_handler.go",
    "pkg/mock",
    "pkg/scalers/azure",
    "pkg/scalers/externalscaler",
    "pkg/scalers/gcp/gcp_stackdriver_client.go",
    "pkg/scalers/liiklus",
    "pkg/scalers/openstack",
    "pkg/scalers/splunk",
    "pkg/scalers/sumologic",
    "pkg/scaling/resolver/azure_keyvault_handler.go",
    "pkg/scaling/resolver/gcp_secretmanager_handler.go",
    "pkg/scaling/resolver/hashicorpvault_handler.go",
    "pkg/util/ginkgo_reporter.go",
)
# A case of KEDA's switch over the types of triggers.
_CASE = re.compile(r"(?m)^\tcase \"[^\"]+\":\n\t\treturn scalers\.(New\w+)\(.*\)\n")
# The adapter's own metrics would listen on all addresses of the machine, and no option says where.
_ADAPTER = Path("cmd/adapter/main.go")
_METRICS_SERVER = "\tRunMetricsServer(ctx)\n"
_CONSTRUCTOR = re.compile(r"(?m)^func (New\w+)\(")


@dataclass(frozen=True, slots=True)
class NarrowedArtifact(Artifact):
    def sources(self) -> Sequence[Path]:
        stand_ins = sorted((self.folder / "stand_ins").rglob("*.go"))
        return [self.folder / "go.mod", self.folder / "go.sum", *stand_ins, Path(__file__)]

    @contextlib.contextmanager
    def module(self, go: Go) -> Iterator[Path]:
        """A copy of the module, which replaces KEDA by what `_narrow` makes of it."""
        go.run("mod", "download", MODULE, folder=self.folder)
        found = go.run("list", "-m", "-f", "{{.Dir}}", MODULE, folder=self.folder)
        with tempfile.TemporaryDirectory(prefix="slipway-keda-") as name:
            folder = Path(name)
            shutil.copyfile(self.folder / "go.sum", folder / "go.sum")
            text = (self.folder / "go.mod").read_text()
            (folder / "go.mod").write_text(text + REPLACED)
            _narrow(Path(found.strip()), self.folder / "stand_ins", folder / "keda")
            yield folder


KEDA = NarrowedArtifact(
    name="keda",
    release_of=MODULE,
    programs={
        "keda-operator": f"{MODULE}/cmd/operator",
        "keda-adapter": f"{MODULE}/cmd/adapter",
    },
    manifests={"keda": ((MODULE, "config/default"),)},
)


def _narrow(source: Path, stand_ins: Path, target: Path) -> None:
    for part in _PARTS:
        shutil.copytree(
            source / part,
            target / part,
            ignore=shutil.ignore_patterns("*_test.go"),
            # The module cache is read-only.
            copy_function=shutil.copyfile,
        )
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.copyfile(source / "go.mod", target / "go.mod")
    for name in _LEFT_OUT:
        path = target / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    scalers = target / "pkg" / "scalers"
    for path in scalers.glob("*_scaler.go"):
        if path.name not in KEPT_SCALERS:
            path.unlink()
    shutil.copytree(stand_ins, target, dirs_exist_ok=True)
    _drop_cases(target / "pkg" / "scaling" / "scalers_builder.go", scalers)
    adapter = target / _ADAPTER
    adapter.write_text(adapter.read_text().replace(_METRICS_SERVER, ""))


def _drop_cases(builder: Path, scalers: Path) -> None:
    """KEDA answers "no scaler found for type" to triggers without a constructor."""
    sources = [path.read_text() for path in scalers.glob("*.go")]
    known = {name for text in sources for name in _CONSTRUCTOR.findall(text)}
    builder.write_text(
        _CASE.sub(lambda case: case[0] if case[1] in known else "", builder.read_text())
    )
