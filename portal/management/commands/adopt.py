"""Decide what a copy of the portal's database does to clusters. Without an option nothing is changed: it says
what going on would touch.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from deployments.delivery.domain import owned_kinds
from deployments.lifecycle.services import adoption
from fleet.clusters.selectors import clusters
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import installation, namespaces

_KINDS = (*owned_kinds.WORKLOADS, owned_kinds.ROUTE, *owned_kinds.DEPENDENT_OBJECTS)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        decision = parser.add_mutually_exclusive_group()
        decision.add_argument(
            "--take-over",
            action="store_true",
            help="this database goes on; every other copy stops before its next write",
        )
        decision.add_argument(
            "--separate",
            action="store_true",
            help="this database becomes another installation and leaves alone all that exists",
        )
        parser.add_argument(
            "--namespace",
            metavar="CLUSTER/NAMESPACE",
            help="only this namespace, of another installation: with --take-over it becomes this one's",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            if options["namespace"]:
                self._namespace(options["namespace"], dry_run=not options["take_over"])
            elif options["separate"]:
                self._separate()
            else:
                self._whole(is_take_over=options["take_over"])
        except ClusterError as error:
            raise CommandError(error.message) from error

    def _whole(self, *, is_take_over: bool) -> None:
        current = installation.read()
        self.stdout.write(f"Installation {current.identity}")
        self.stdout.write(current.suspended_reason or "This database may write to its clusters.")
        highest = 0
        unread = []
        for cluster in clusters.list_clusters():
            plan = adoption.plan_for(cluster_id=cluster.id)
            self._show(cluster.name, plan)
            if plan.problem:
                unread.append(cluster.name)
                continue
            fence = namespaces.highest_fence(cluster_id=cluster.id, names=plan.namespaces)
            highest = max(highest, fence)
        if not is_take_over:
            self.stdout.write(
                "Nothing was changed. --take-over does this, --separate leaves all alone."
            )
            return
        if unread:
            raise CommandError(f"{', '.join(unread)} could not be read, so nothing was changed.")
        installation.resume(above=highest)
        for cluster in clusters.list_clusters():
            names = adoption.namespaces_of(cluster.id)
            stamped = namespaces.stamp(cluster_id=cluster.id, names=names)
            self.stdout.write(f"{cluster.name}: took over {', '.join(stamped) or 'no namespace'}")
        self.stdout.write(
            "This database goes on. Every other copy of it stops before its next write."
        )

    def _show(self, name: str, plan: adoption.ClusterPlan) -> None:
        if plan.problem:
            self.stdout.write(f"{name}: not known: {plan.problem}")
            return
        self.stdout.write(f"{name}: {plan.unchanged} deployments stay as they are")
        for effects in plan.effects:
            self.stdout.write(f"  {effects.description}")
        for refused in plan.refused:
            self.stdout.write(f"  {refused}")

    def _separate(self) -> None:
        current = installation.renew()
        self.stdout.write(
            f"This database is installation {current.identity} now. What exists on clusters stays the "
            "original's; retire the deployments here, or register other clusters."
        )

    def _namespace(self, place: str, *, dry_run: bool) -> None:
        cluster_name, _, name = place.partition("/")
        ids = {cluster.name: cluster.id for cluster in clusters.list_clusters()}
        if cluster_name not in ids or not name:
            raise CommandError("Write --namespace CLUSTER/NAMESPACE, with the name of a cluster.")
        changed = namespaces.take_over(
            cluster_id=ids[cluster_name], name=name, kinds=_KINDS, dry_run=dry_run
        )
        verb = "Would take over" if dry_run else "Took over"
        for item in changed:
            self.stdout.write(f"{verb} {item}")
        if not changed:
            self.stdout.write(f"{name} is this installation's already.")
        elif dry_run:
            self.stdout.write("Nothing was changed. --take-over does this; pods of KServe restart.")
