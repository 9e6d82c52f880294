"""What Argo CD or Flux does, for a cluster in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from tests.deployments.git_server import GitServer
from tests.deployments.world import World

FOLDER = "platform/clusters/eks-test/vision"


@dataclass
class Operator:
    """The cluster becomes what the branch says, with pruning."""

    world: World
    server: GitServer

    def sync(self) -> None:
        desired = {}
        for path, text in self.server.tree().items():
            if path.startswith(f"{FOLDER}/") and not path.endswith("kustomization.yaml"):
                item: dict[str, Any] = yaml.safe_load(text)
                name = item["metadata"]["name"]
                desired[item["kind"], item["metadata"].get("namespace", ""), name] = item
        cluster = self.world.cluster
        for key in [key for key in cluster.objects if key not in desired and key[0] != "Pod"]:
            if key[0] != "Namespace":
                del cluster.objects[key]
        for item in desired.values():
            cluster.apply(item)
        cluster.calls.clear()
