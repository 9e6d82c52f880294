"""A deployment request while it is written: the form and its choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deployments.changes.web import (
    gpu_choice,
    new_deployment_cards,
    request_body,
    serving_place,
    version_choice,
)
from deployments.changes.web.form import DeployForm
from deployments.changes.web.gpu_choice import value_of
from deployments.changes.web.serving_place import ServingPlace
from deployments.changes.web.suggestions import Suggestions
from deployments.models import ChangeRequest, ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.preflight.selectors import addresses
from deployments.sizing.domain.ranking import Advice
from deployments.spec.domain import kubernetes_names
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.catalogue import Placement
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors import instance_types as cluster_instance_types
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain import instance_types
from portal.accounts.models import Team, User

_REPLICAS = ("min_replicas", "max_replicas")


@dataclass(slots=True)
class Draft:
    """The form with its choices, for one HTTP request."""

    user: User
    team: Team
    data: dict[str, str]
    version: ModelVersion | None
    place: ServingPlace
    form: DeployForm
    # What the portal chose among `data`.
    suggestions: Suggestions
    # GPU products of nodes without an instance type, with these nodes.
    unlabelled: Mapping[str, list[str]] = field(default_factory=dict)
    requested: DeployDraft | None = None
    # The request in whose place this one is sent.
    replaced: ChangeRequest | None = None

    @property
    def cluster(self) -> ClusterInfo | None:
        return self.place.cluster

    @property
    def shares(self) -> list[GpuShare]:
        return self.place.shares

    @property
    def advice(self) -> Advice | None:
        return self.place.advice

    @property
    def placement(self) -> Placement:
        return request_body.placement_of(self.data)

    @property
    def shares_reason(self) -> str:
        """The reason why there are no GPU shares."""
        cluster = self.cluster
        if cluster is None:
            return "Choose a cluster first. A platform admin connects clusters under Admin."
        if cluster.is_reachable is False:
            return f"{cluster.name} does not answer: {cluster.last_error}"
        if self.version is None:
            return "Choose a version first. Its file says how much GPU memory it needs."
        if self.unlabelled_note:
            return self.unlabelled_note
        if not self.place.listed:
            return f"{cluster.name} has no known GPU nodes."
        return catalogue.explain_no_share(self.placement, cluster.name)

    @property
    def unlabelled_note(self) -> str:
        """A note on GPUs of the cluster that cannot be requested, and why. Empty if all can."""
        if not self.unlabelled:
            return ""
        products = ", ".join(sorted(self.unlabelled))
        nodes = [name for names in self.unlabelled.values() for name in names]
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        return (
            f"{products} of {nodes[0]}{more} cannot be requested: no label {instance_types.LABEL}. "
            "A platform admin can set one."
        )

    @property
    def share(self) -> GpuShare | None:
        chosen = self.data.get("share", "")
        return next((share for share in self.shares if value_of(share) == chosen), None)

    @property
    def is_share_suggested(self) -> bool:
        return "share" in self.suggestions.values


def build(
    user: User,
    team: Team,
    typed: Mapping[str, str],
    shown: Suggestions | None = None,
    *,
    replaced: ChangeRequest | None = None,
) -> Draft:
    """Fill in what was not typed; typed values stay, right or wrong. `shown` are the suggestions that came back
    with the form. The name of the request that is `replaced` is free.
    """
    freed_id = replaced.deployment_id if replaced else None
    shown = shown or Suggestions()
    typed = shown.drop_outdated(typed)
    version = version_choice.find(user=user, team=team, version_id=typed.get("version", ""))
    known = clusters.list_clusters()
    data = {**request_body.DEFAULTS, **typed}
    place = serving_place.choose(version, known, typed, data)
    data["engine"] = place.engine
    taken: frozenset[str] = frozenset()
    if place.cluster is not None:
        data["cluster"] = str(place.cluster.id)
        taken = addresses.taken_names(
            cluster_id=place.cluster.id, namespace=team.slug, without_id=freed_id
        )
    if version is not None:
        _suggest_for_version(typed, data, version, place, taken)
    additional = [data[name] for name in request_body.ADDITIONAL_MODELS if data.get(name)]
    choices = new_deployment_cards.choices_of(
        version,
        known,
        place.shares,
        addable=version_choice.known_labels(
            user=user, team=team, labels=additional, beside=version
        ),
        namespace=team.slug,
        taken_names=taken,
    )
    form = DeployForm(data, choices=choices)
    draft = Draft(user, team, data, version, place, form, shown.renew(typed, data))
    if place.cluster is not None and (version is not None or place.listed):
        draft.unlabelled = cluster_instance_types.list_unlabelled(cluster_id=place.cluster.id)
    requested = new_deployment_cards.draft_of(form)
    draft.requested = requested and replace(requested, replaced_deployment_id=freed_id)
    draft.replaced = replaced
    return draft


def _suggest_for_version(
    typed: Mapping[str, str],
    data: dict[str, str],
    version: ModelVersion,
    place: ServingPlace,
    taken: frozenset[str],
) -> None:
    """Choose the name, the GPU and the replicas that nobody typed."""
    if "name" not in typed:
        data["name"] = kubernetes_names.suggest(
            version.model.name, namespace=version.model.team.slug, taken=taken
        )
    if "share" not in typed:
        data["share"] = gpu_choice.default_share(place.advice, place.shares)
    replicas = place.advice.demand.replicas if place.advice else 1
    for name in _REPLICAS:
        if name not in typed:
            data[name] = str(replicas)
    if (
        "min_replicas" in typed
        and "max_replicas" not in typed
        and typed["min_replicas"].isdecimal()
    ):
        data["max_replicas"] = str(max(replicas, int(typed["min_replicas"])))
