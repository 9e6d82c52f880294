"""Objects on a cluster, by cluster id. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from fleet.kube.domain import ownership as owners
from fleet.kube.domain.errors import (
    ClusterError,
    InstallationSuspended,
    NotAllowed,
    NotAttempted,
    NotOwned,
    ObjectNotFound,
    Refused,
    Throttled,
    Unreachable,
)
from fleet.kube.domain.label_selectors import Labels
from fleet.kube.domain.resource_types import Manifest, ResourceType
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients, installation
from fleet.kube.services.ownership import Writer

# What later objects of one push may need to exist.
_FIRST = frozenset({"Namespace", "ServiceAccount", "Secret", "ConfigMap", "ServingRuntime"})
_THREADS = 8
# This many consecutive calls without an answer mean that the cluster is unreachable, not one object broken.
_MAX_UNANSWERED = 3
_FEW_NAMESPACES = 8

Json = dict[str, Any]
# A log of a megabyte or more is read so many times at most, each time with fewer lines.
_LOG_READS = 5
# Which group, and which of its manifests.
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Group:
    """Manifests that belong together. `force` takes over the fields that others own."""

    manifests: Sequence[Manifest]
    force: bool = False


@dataclass(frozen=True, slots=True)
class PodLogTail:
    """The last lines of a pod's log. `is_short` means fewer than requested, as no more fit into the limit."""

    text: str
    is_short: bool


def apply(*, cluster_id: int, manifests: Sequence[Manifest], force: bool = False) -> list[Json]:
    """Apply manifests server-side; the result has their order.

    Namespaces and what pods need go first, one after another; the others are applied concurrently. The first
    refusal is raised, after those that were already under way.
    """
    push = _pushed(cluster_id, [Group(manifests, force=force)], dry_run=False)
    return _or_raise(push.result_of(0))


def dry_run(*, cluster_id: int, manifests: Sequence[Manifest]) -> list[str]:
    """Apply manifests without storing them, and return the cluster's warnings about what it accepts, each with the
    objects that it is about. The first refusal is raised.
    """
    push = _pushed(cluster_id, [Group(manifests)], dry_run=True)
    _or_raise(push.result_of(0))
    return push.warnings()


def apply_groups(
    *, cluster_id: int, groups: Sequence[Group], dry_run: bool = False
) -> list[list[Json] | ClusterError]:
    """Apply several groups concurrently, the objects of each one after another until one is refused. What is
    refused in one group does not touch the others; when the cluster itself gives up, the rest is NotAttempted.
    """
    push = _pushed(cluster_id, groups, dry_run=dry_run)
    return [push.result_of(index) for index in range(len(groups))]


def _or_raise(result: list[Json] | ClusterError) -> list[Json]:
    if isinstance(result, ClusterError):
        raise result
    return result


def _pushed(cluster_id: int, groups: Sequence[Group], *, dry_run: bool) -> _Push:
    writer = Writer(cluster_id)
    push = _Push(writer, groups, dry_run=dry_run)
    try:
        writer.prepare(_namespaces_of(groups), dry_run=dry_run)
    except InstallationSuspended as error:
        push.refuse(error)
        return push
    early = [push.early_of(index) for index in range(len(groups))]
    late = [push.late_of(index) for index in range(len(groups))]
    if len(groups) == 1:
        late = [[place] for place in late[0]]
    for wave in (early, late):
        _run(push, [places for places in wave if places])
    return push


def _namespaces_of(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        for manifest in group.manifests:
            meta = manifest["metadata"]
            is_namespace = manifest["kind"] == "Namespace"
            yield meta.get("name" if is_namespace else "namespace") or ""


def _run(push: _Push, wave: Sequence[Sequence[_Place]]) -> None:
    if len(wave) == 1:
        push.each(wave[0])
    elif wave:
        with ThreadPoolExecutor(min(_THREADS, len(wave))) as pool:
            for done in [pool.submit(push.each, places) for places in wave]:
                done.result()


class _Push:
    """One call of apply_groups: the result of each manifest, and whether to continue."""

    def __init__(self, writer: Writer, groups: Sequence[Group], *, dry_run: bool) -> None:
        self._writer = writer
        self._groups = groups
        self._dry_run = dry_run
        self._made: dict[_Place, Json] = {}
        self._errors: dict[int, ClusterError] = {}
        self._warned: list[tuple[str, str]] = []
        self._timeouts = 0

    def refuse(self, error: ClusterError) -> None:
        self._errors = dict.fromkeys(range(len(self._groups)), error)

    def early_of(self, index: int) -> list[_Place]:
        manifests = enumerate(self._groups[index].manifests)
        return [(index, place) for place, manifest in manifests if manifest["kind"] in _FIRST]

    def late_of(self, index: int) -> list[_Place]:
        manifests = enumerate(self._groups[index].manifests)
        return [(index, place) for place, manifest in manifests if manifest["kind"] not in _FIRST]

    def each(self, places: Sequence[_Place]) -> None:
        """Apply the objects one after another, until one is refused."""
        for index, place in places:
            if index in self._errors:
                return
            if self._timeouts >= _MAX_UNANSWERED:
                self._errors[index] = NotAttempted(
                    "The cluster did not respond to earlier requests just now."
                )
                return
            try:
                self._apply(index, place)
            except ClusterError as error:
                self._errors.setdefault(index, error)

    def _apply(self, index: int, place: int) -> None:
        group = self._groups[index]
        manifest = group.manifests[place]
        name = f"{manifest['kind']} {manifest['metadata']['name']}"
        try:
            self._made[index, place] = self._writer.apply(
                manifest,
                dry_run=self._dry_run,
                force=group.force,
                on_warning=lambda text: self._warned.append((text, name)),
            )
        except (Throttled, Unreachable):
            # A webhook or a quota may throttle one object: several in a row are the API server.
            self._timeouts += 1
            raise
        except ClusterError:
            # A refusal is an answer.
            self._timeouts = 0
            raise
        self._timeouts = 0

    def warnings(self) -> list[str]:
        """Return the warnings sorted, so that two dry runs of the same manifests compare equal."""
        names_by_text: dict[str, list[str]] = {}
        for text, name in sorted(self._warned):
            names_by_text.setdefault(text, []).append(name)
        return [f"{', '.join(names)}: {text}" for text, names in names_by_text.items()]

    def result_of(self, index: int) -> list[Json] | ClusterError:
        if index in self._errors:
            return self._errors[index]
        return [self._made[index, place] for place in range(len(self._groups[index].manifests))]


@dataclass(frozen=True, slots=True)
class LiveObject:
    """An object as the cluster has it. `item` is None if there is none, and `is_foreign` set for a namespaced one of
    another installation, whose content is not shown.
    """

    item: Json | None
    is_foreign: bool = False


def get(
    *, cluster_id: int, api_version: str, kind: str, namespace: str | None, name: str
) -> dict[str, Any] | None:
    """Read an object. None if there is none, or if a namespaced one belongs to another installation."""
    return read(
        cluster_id=cluster_id, api_version=api_version, kind=kind, namespace=namespace, name=name
    ).item


def read(
    *, cluster_id: int, api_version: str, kind: str, namespace: str | None, name: str
) -> LiveObject:
    """Read an object, and tell one of another installation from none."""
    client = clients.client_for(cluster_id)
    try:
        item = client.get(client.resource_type(api_version, kind), namespace, name)
    except ObjectNotFound:
        return LiveObject(None)
    if namespace and owners.owner_of(item) not in ("", installation.read().identity):
        return LiveObject(None, is_foreign=True)
    return LiveObject(item)


def list_objects(
    *,
    cluster_id: int,
    api_version: str,
    kind: str,
    namespace: str | None,
    labels: Mapping[str, str],
) -> list[dict[str, Any]]:
    """List the objects with these labels, without those of other installations."""
    writer = Writer(cluster_id)
    resource = writer.client.resource_type(api_version, kind)
    listing = writer.client.list_all(resource, namespace=namespace, labels=labels)
    return writer.keep_own([listing.items])[0]


def list_several(
    *,
    cluster_id: int,
    kinds: Sequence[tuple[str, str]],
    namespaces: Sequence[str],
    labels: Labels,
    skip_refused: bool = False,
) -> list[list[Json]]:
    """List the objects with these labels for each (apiVersion, kind), of the namespaces at least. Lists nothing of
    a kind that the cluster lacks, nor with `skip_refused` of one that the portal may not list, nor of other
    installations.
    """
    writer = Writer(cluster_id)
    listed = [
        _list_kind(writer.client, kind, namespaces, labels, skip_refused=skip_refused)
        for kind in kinds
    ]
    return writer.keep_own(listed)


def _list_kind(
    client: KubeClient,
    kind: tuple[str, str],
    namespaces: Sequence[str],
    labels: Labels,
    *,
    skip_refused: bool,
) -> list[Json]:
    try:
        return _list_namespaces(client, client.resource_type(*kind), namespaces, labels)
    except ObjectNotFound:
        return []
    except Refused:
        if not skip_refused:
            raise
        return []


def _list_namespaces(
    client: KubeClient, kind: ResourceType, namespaces: Sequence[str], labels: Labels
) -> list[Json]:
    """List a few namespaces one by one, many in one listing of the cluster where the portal may: an API server
    has no index of labels.
    """
    if len(namespaces) > _FEW_NAMESPACES:
        try:
            return client.list_all(kind, labels=labels).items
        except NotAllowed:
            pass
    listed = (client.list_all(kind, namespace=name, labels=labels).items for name in namespaces)
    return list(itertools.chain.from_iterable(listed))


def delete(
    *, cluster_id: int, api_version: str, kind: str, namespace: str | None, name: str
) -> None:
    """Delete an object. An absent one counts as deleted. Raises NotOwned for one of another installation."""
    writer = Writer(cluster_id)
    writer.prepare([namespace or ""])
    try:
        writer.delete(writer.client.resource_type(api_version, kind), namespace, name)
    except ObjectNotFound:
        return


def delete_own(
    *, cluster_id: int, api_version: str, kind: str, namespace: str | None, name: str
) -> None:
    """Delete an object that the portal may have made; one of another installation is none."""
    with suppress(NotOwned):
        delete(
            cluster_id=cluster_id,
            api_version=api_version,
            kind=kind,
            namespace=namespace,
            name=name,
        )


def pod_log(*, cluster_id: int, namespace: str, pod: str, tail_lines: int) -> str:
    return clients.client_for(cluster_id).pod_log(namespace, pod, tail_lines=tail_lines)


def pod_logs(
    *,
    cluster_id: int,
    namespace: str,
    pods: Sequence[str],
    tail_lines: int,
    limit_bytes: int,
    is_previous: bool,
) -> dict[str, PodLogTail | ClusterError]:
    """Read the last lines of several pods at a time, each line with its timestamp; by pod its lines, or why there are
    none.
    """
    client = clients.client_for(cluster_id)

    def read(pod: str, tail_lines: int) -> str:
        return client.pod_log(
            namespace,
            pod,
            tail_lines=tail_lines,
            limit_bytes=limit_bytes,
            is_previous=is_previous,
            has_timestamps=True,
        )

    def read_one(pod: str) -> PodLogTail | ClusterError:
        try:
            return _read_newest(partial(read, pod), tail_lines, limit_bytes)
        except ClusterError as error:
            return error

    if len(pods) < 2:
        return {pod: read_one(pod) for pod in pods}
    with ThreadPoolExecutor(min(_THREADS, len(pods))) as pool:
        return dict(zip(pods, pool.map(read_one, pods), strict=True))


def _read_newest(read: Callable[[int], str], tail_lines: int, limit_bytes: int) -> PodLogTail:
    """Read as many of the last lines as the limit holds. Kubernetes cuts the newest ones (limitBytes counts from the
    first line of the tail), so fewer lines are requested until all of them fit.
    """
    lines = tail_lines
    for _ in range(_LOG_READS - 1):
        text = read(lines)
        if len(text.encode()) < limit_bytes or lines <= 1:
            return PodLogTail(text, lines < tail_lines)
        # As many as fitted, and some room for the newest being longer.
        lines = max(1, min(text.count("\n") * 9 // 10 or lines // 4, lines // 2))
    return PodLogTail(read(1), is_short=True)


def list_pod_events(*, cluster_id: int, namespace: str) -> list[Json]:
    """List the events of the namespace's pods that the cluster still keeps, an hour by default."""
    client = clients.client_for(cluster_id)
    kind = client.resource_type("v1", "Event")
    return client.list_all(kind, namespace=namespace, fields="involvedObject.kind=Pod").items
