"""Print the RBAC manifest with the portal's minimum permissions on a cluster, for kubectl apply."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from fleet.clusters.domain import rbac
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.models import Cluster
from portal.accounts.models import Team


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        who = parser.add_mutually_exclusive_group()
        who.add_argument(
            "--group",
            default="slipway",
            help="the Kubernetes group of the portal's account; on EKS, that of its access entry",
        )
        who.add_argument(
            "--service-account", metavar="NAMESPACE/NAME", help="for a portal inside the cluster"
        )
        parser.add_argument("--name", default="slipway", help="of the roles and bindings")
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--namespaces",
            nargs="+",
            metavar="NAMESPACE",
            help="grant write access only in these; default: those of all teams",
        )
        where.add_argument(
            "--cluster-wide",
            action="store_true",
            help="grant write access in every namespace, including system namespaces",
        )
        self._add_metrics(parser)
        parser.add_argument(
            "--fleet-actions",
            action="store_true",
            help="also cordon and drain nodes, and write node pools, when two people agree on it",
        )

        parser.add_argument(
            "--device-plugin-config",
            metavar="NAMESPACE/NAME",
            help="with --fleet-actions: also read this ConfigMap of NVIDIA's device plugin",
        )

    def _add_metrics(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--gateway-namespaces",
            nargs="*",
            metavar="NAMESPACE",
            help="read the metrics of the gateway's proxies in these; default: those of all clusters",
        )

        parser.add_argument(
            "--gpu-metrics-namespaces",
            nargs="*",
            default=[],
            metavar="NAMESPACE",
            help="read the metrics of dcgm-exporter in these, for clusters whose Prometheus does not have them",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = self._account(options)
        if options["cluster_wide"]:
            namespaces: Sequence[str] = ()
            self.stdout.write(rbac.describe_cluster_wide(), ending="")
        else:
            namespaces = self._namespaces(options["namespaces"])
        manifests = rbac.manifests(
            account=account,
            name=options["name"],
            team_namespaces=namespaces,
            gateway_namespaces=self._gateways(options["gateway_namespaces"]),
            exporter_namespaces=options["gpu_metrics_namespaces"],
            has_fleet_actions=options["fleet_actions"],
            device_plugin_config=self._device_plugin_config(options),
        )
        self.stdout.write(yaml.safe_dump_all(manifests, sort_keys=False), ending="")

    def _namespaces(self, requested: Sequence[str] | None) -> Sequence[str]:
        namespaces = requested or list(Team.objects.order_by("slug").values_list("slug", flat=True))
        if not namespaces:
            raise CommandError(
                "There are no teams yet: pass --namespaces, or --cluster-wide to grant write access in "
                "all namespaces."
            )
        return namespaces

    def _gateways(self, requested: Sequence[str] | None) -> Sequence[str]:
        if requested is not None:
            return requested
        namespaces = set()
        for cluster in Cluster.objects.all():
            listed = ServingPolicy.from_json(cluster.serving).gateway_namespaces
            namespaces.update([cluster.gateway_namespace, *listed])
        return sorted(namespaces)

    def _device_plugin_config(self, options: dict[str, Any]) -> tuple[str, str] | None:
        named = options["device_plugin_config"]
        if not named:
            return None
        namespace, _, name = named.partition("/")
        if not namespace or not name or not options["fleet_actions"]:
            raise CommandError(
                "--device-plugin-config is NAMESPACE/NAME of a ConfigMap, and needs --fleet-actions."
            )
        return namespace, name

    def _account(self, options: dict[str, Any]) -> dict[str, str]:
        named = options["service_account"]
        if not named:
            return {"kind": "Group", "name": options["group"]}
        namespace, _, name = named.partition("/")
        if not namespace or not name:
            raise CommandError("--service-account is NAMESPACE/NAME, such as slipway/portal.")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
