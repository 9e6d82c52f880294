"""Check before each write whose namespace and object it would change, and write the identity with it.

`Writer` is the only way to a cluster's writing calls. Rows are read and written by `prepare` only, so
that the calls may be made from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

from fleet.kube.domain import ownership
from fleet.kube.domain.errors import ClusterError, NotAllowed, NotOwned, ObjectNotFound
from fleet.kube.domain.ownership import Fence
from fleet.kube.domain.resource_types import Manifest, ResourceType
from fleet.kube.services import clients, installation
from fleet.kube.services.installation import Identity
from fleet.models import Cluster
from portal.core.single_row import find_one

Json = dict[str, Any]
T = TypeVar("T")
_THREADS: Final = 8
NAMESPACE: Final = ResourceType("v1", "Namespace", "namespaces", is_namespaced=False)
# The portal may not read them: their namespace decides.
_UNREADABLE: Final = frozenset({"Secret"})
# Nodes are the cluster's, whoever cordons them.
_WITHOUT_OWNER: Final = frozenset({"Node"})
# What tells whose a namespace from before the identity is.
_TELLING: Final = (
    ("serving.kserve.io/v1beta1", "InferenceService"),
    ("apps/v1", "Deployment"),
    ("serving.kserve.io/v1alpha1", "LLMInferenceService"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("serving.kserve.io/v1alpha1", "InferenceGraph"),
)


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof of who owns a namespace. `unproven` names the objects that no row records. `has_history`: rows say
    that the portal wrote there.
    """

    unproven: Sequence[str]
    has_history: bool


def _nothing_is_proven(_cluster: int, _namespace: str, items: Sequence[Mapping[str, Any]]) -> Proof:
    return Proof([_name(item) for item in items], has_history=False)


def _name(item: Mapping[str, Any]) -> str:
    return f"{item['kind']} {item['metadata']['name']}"


_prove: Callable[[int, str, Sequence[Mapping[str, Any]]], Proof] = _nothing_is_proven


def register_proof(prove: Callable[[int, str, Sequence[Mapping[str, Any]]], Proof]) -> None:
    """Set what says which objects without an identity the portal's rows record."""
    global _prove  # noqa: PLW0603  one product registers it, at start
    _prove = prove


class Writer:
    """The writing calls of one cluster, for one operation.

    `refusals` are the errors by namespace that `prepare` found; writing there raises them.
    """

    def __init__(self, cluster_id: int) -> None:
        self.client = clients.client_for(cluster_id)
        self.refusals: dict[str, ClusterError] = {}
        self._unclaimed: set[str] = set()
        self._cluster_id = cluster_id

    @cached_property
    def _installation(self) -> Identity:
        return installation.read()

    def prepare(self, namespaces: Iterable[str], *, dry_run: bool = False) -> None:
        """Read the namespaces, take over those that are provably the portal's, and raise their fence.

        Raises InstallationSuspended where the portal may not write at all.
        """
        self._installation.require_active()
        names = sorted(set(namespaces) - {"", self._gateway_namespace()})
        live = dict(zip(names, self._each(self._read, names), strict=True))
        for name in names:
            error = self._check_namespace(name, live[name])
            if error is not None:
                self.refusals[name] = error
        left = {*self.refusals, *self._unclaimed}
        existing = [name for name in names if live[name] is not None and name not in left]
        if existing and not dry_run:
            fence = installation.raise_fence()
            written = self._each(lambda name: self._claim(name, fence), existing)
            refused = zip(existing, written, strict=True)
            self.refusals |= {name: error for name, error in refused if error is not None}

    def apply(
        self,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        force: bool = False,
        on_warning: Callable[[str], None] | None = None,
    ) -> Json:
        """Apply an object server-side with the identity. Raises NotOwned if another installation wrote the object."""
        kind, meta = str(manifest["kind"]), manifest["metadata"]
        namespace, name = meta.get("namespace"), meta.get("name", "")
        live = None
        if kind not in _UNREADABLE and name:
            resource = self.client.resource_type(str(manifest["apiVersion"]), kind)
            live = self._live(resource, namespace, name)
        self._require(namespace or (name if kind == "Namespace" else ""), live)
        stamped = ownership.stamp(manifest, self._installation.identity, live)
        return self.client.apply(stamped, dry_run=dry_run, force=force, on_warning=on_warning)

    def delete(self, kind: ResourceType, namespace: str | None, name: str) -> None:
        """Raises NotOwned where another installation wrote the object, ObjectNotFound without one."""
        live = None if kind.kind in _UNREADABLE else self.client.get(kind, namespace, name)
        self._require(namespace or "", live)
        self.client.delete(kind, namespace, name)

    def merge_patch(
        self,
        kind: ResourceType,
        namespace: str | None,
        name: str,
        patch: Manifest,
        *,
        dry_run: bool = False,
    ) -> Json:
        """Raises NotOwned where another installation wrote the object."""
        live = None if kind.kind in _WITHOUT_OWNER else self._live(kind, namespace, name)
        self._require(namespace or "", live)
        return self.client.merge_patch(kind, namespace, name, patch, dry_run=dry_run)

    def evict(self, namespace: str, pod: str, *, uid: str) -> None:
        """Evict any pod: draining a node moves the pods of everybody."""
        self._installation.require_active()
        self.client.evict(namespace, pod, uid=uid)

    def describe_owner(self, name: str) -> str:
        """Say why a namespace is not the portal's; empty if it is, would become it, or does not exist."""
        live = self._read(name)
        if isinstance(live, ClusterError):
            raise live
        if live is None or ownership.owner_of(live) == self._installation.identity:
            return ""
        error = self._check_namespace(name, live)
        if error is not None and not isinstance(error, NotOwned):
            raise error
        return error.message if error else ""

    def keep_own(self, listed: Sequence[Sequence[Json]]) -> list[list[Json]]:
        """Drop what another installation wrote. Objects without an identity are their namespace's, pods too."""
        foreign: dict[str, bool] = {}
        for item in (item for items in listed for item in items if ownership.is_managed(item)):
            name = item["metadata"].get("namespace", "")
            if item.get("kind", "Pod") != "Pod" and name and not ownership.owner_of(item):
                if name not in foreign:
                    namespace = self._read(name)
                    if isinstance(namespace, ClusterError):
                        raise namespace
                    foreign[name] = namespace is not None and self._is_foreign(namespace)
            elif self._is_foreign(item) and not item["metadata"].get("ownerReferences"):
                foreign.setdefault(name, True)
        return [[item for item in items if not self._is_dropped(item, foreign)] for items in listed]

    def _is_dropped(self, item: Json, foreign: Mapping[str, bool]) -> bool:
        if ownership.owner_of(item):
            return self._is_foreign(item)
        return foreign.get(item["metadata"].get("namespace", ""), False)

    def _is_foreign(self, item: Mapping[str, Any]) -> bool:
        owner = ownership.owner_of(item)
        return bool(owner) and owner != self._installation.identity

    def _require(self, namespace: str, live: Json | None) -> None:
        self._installation.require_active()
        if namespace in self.refusals:
            raise self.refusals[namespace]
        if live is not None and self._is_foreign(live):
            raise NotOwned(ownership.describe_foreign(live))

    def _live(self, kind: ResourceType, namespace: str | None, name: str) -> Json | None:
        try:
            return self.client.get(kind, namespace, name)
        except ObjectNotFound:
            return None

    def _read(self, name: str) -> Json | ClusterError | None:
        try:
            return self._live(NAMESPACE, None, name)
        except ClusterError as error:
            return error

    def _check_namespace(self, name: str, live: Json | ClusterError | None) -> ClusterError | None:
        if live is None or isinstance(live, ClusterError):
            return live
        if self._is_foreign(live):
            return NotOwned(ownership.describe_foreign(live))
        if not ownership.owner_of(live):
            return self._check_unclaimed(name, live)
        fence = Fence.read(live)
        # Read again: another worker of this portal may have written meanwhile.
        if (
            fence is not None
            and fence.is_written_by_a_copy(self._installation.fence)
            and fence.is_written_by_a_copy(installation.read().fence)
        ):
            raise installation.suspend(namespace=name, cluster=self._cluster_name())
        return None

    def _check_unclaimed(self, name: str, live: Json) -> ClusterError | None:
        """Check a namespace from before the identity, which is taken over if the rows record all that is in it."""
        try:
            items = [item for kind in _TELLING for item in self._list(kind, name)]
        except ClusterError as error:
            return error
        unowned = [item for item in items if not ownership.owner_of(item)]
        proof = _prove(self._cluster_id, name, unowned)
        foreign = [item for item in items if self._is_foreign(item)]
        unproven = [
            *proof.unproven,
            *map(_name, foreign),
        ]
        is_anothers = ownership.is_managed(live) and not items and not proof.has_history
        if unproven or is_anothers:
            return NotOwned(ownership.describe_unproven(name, unproven))
        return None

    def _list(self, kind: tuple[str, str], namespace: str) -> list[Json]:
        try:
            resource = self.client.resource_type(*kind)
            items = self.client.list_all(
                resource, namespace=namespace, labels=ownership.MANAGED_BY
            ).items
        except ObjectNotFound:
            return []
        except NotAllowed:
            # Where the portal may not read it may not write either, and claims nothing.
            self._unclaimed.add(namespace)
            return []
        return [item for item in items if not item["metadata"].get("ownerReferences")]

    def _claim(self, name: str, fence: Fence) -> ClusterError | None:
        patch = {
            "metadata": {
                "labels": {ownership.LABEL: self._installation.identity},
                "annotations": {ownership.FENCE: str(fence)},
            }
        }
        try:
            self.client.merge_patch(NAMESPACE, None, name, patch)
        except ClusterError as error:
            return error
        return None

    def _each(self, call: Callable[[str], T], names: Sequence[str]) -> list[T]:
        if len(names) < 2:
            return [call(name) for name in names]
        with ThreadPoolExecutor(min(_THREADS, len(names))) as pool:
            return list(pool.map(call, names))

    def _gateway_namespace(self) -> str:
        """Gateways are shared: there each object has its own owner."""
        rows = Cluster.objects.filter(pk=self._cluster_id)
        return find_one(rows.values_list("gateway_namespace", flat=True)) or ""

    def _cluster_name(self) -> str:
        return Cluster.objects.values_list("name", flat=True).get(pk=self._cluster_id)
