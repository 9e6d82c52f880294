"""Kueue's manager, built from its published module as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.build import Artifact

_MODULE = "sigs.k8s.io/kueue"
# The visibility server makes its certificate in a folder of the root, and no setting says where.
VISIBILITY_FOLDER = "kueue-visibility"


@dataclass(frozen=True, slots=True)
class KueueArtifact(Artifact):
    def variables(self) -> Mapping[str, str]:
        """The folder is one of that in which the manager is started."""
        return {f"{_MODULE}/pkg/visibility.certDir": VISIBILITY_FOLDER}

    def sources(self) -> Sequence[Path]:
        return [self.folder / "go.mod", self.folder / "go.sum", Path(__file__)]


KUEUE = KueueArtifact(
    name="kueue",
    release_of=_MODULE,
    programs={"kueue": f"{_MODULE}/cmd/kueue"},
    manifests={"kueue": ((_MODULE, "config/default"),)},
)
