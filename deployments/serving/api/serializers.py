"""Deployments and revisions in the API: desired and observed state."""

from __future__ import annotations

from rest_framework import serializers

from deployments.models import Deployment, Revision, Rollout
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.spec.api.serializers import ServingSpecSerializer
from deployments.states import DeploymentState, Environment
from portal.api.base_serializer import Serializer, choice_of

TAGS = ["deployments"]


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    """A revision of a deployment; `version` is the model's name, a colon and the number."""

    version = serializers.CharField(source="version.label")
    spec = ServingSpecSerializer()

    class Meta:
        model = Revision
        fields = ["number", "version", "version_id", "workload_name", "spec", "created_at"]


class ListedRevisionSerializer(RevisionSerializer):
    role = serializers.SerializerMethodField(
        help_text="stable, candidate, past (it ran before: a roll back may go to it), or what became of a "
        "revision that never ran: draft, requested, approved, starting, rejected, withdrawn or expired"
    )

    class Meta(RevisionSerializer.Meta):
        fields = [*RevisionSerializer.Meta.fields, "role"]

    def get_role(self, revision: Revision) -> str:
        role: str = self.context["roles"][revision.pk]
        return role


class DesiredSerializer(Serializer):
    """The desired state of a deployment; `candidate_weight` is the percentage of requests that the
    candidate gets.
    """

    generation = serializers.IntegerField(source="desired_generation")
    stable = RevisionSerializer(source="stable_revision", allow_null=True)
    candidate = RevisionSerializer(source="candidate_revision", allow_null=True)
    candidate_weight = serializers.IntegerField()
    candidate_mirror = serializers.IntegerField(
        help_text="percent of requests mirrored to a shadow; its responses are discarded"
    )
    is_stopped = serializers.BooleanField()
    is_retiring = serializers.BooleanField()
    scale = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="replicas approved after the revision was created; empty: as in its spec",
    )


class ObservedSerializer(Serializer):
    """The state of a deployment as its cluster last reported it."""

    generation = serializers.IntegerField(source="observed_generation")
    at = serializers.DateTimeField(source="observed_at", allow_null=True)
    candidate_weight = serializers.IntegerField(
        source="observed_weight",
        allow_null=True,
        help_text="Null if unknown, or without a candidate.",
    )
    candidate_mirror = serializers.IntegerField(
        source="observed_mirror",
        allow_null=True,
        help_text="Null if unknown, or without a candidate.",
    )
    revisions = serializers.DictField(
        source="observed",
        help_text="State by revision: stage, ready, reason, message, weight, since, and queue. Where it names a "
        "queue of Kueue, queue has: queue, state (pending, admitted, evicted, ignored), waiting (pods), position (of the "
        "first pod in the LocalQueue; null if unknown), why, eviction.",
    )


class DeploymentSerializer(serializers.ModelSerializer[Deployment]):
    """A deployment with its desired and observed state."""

    team = serializers.CharField(source="team.slug")
    cluster = serializers.CharField(source="cluster.name")
    environment = choice_of(Environment)
    state = choice_of(DeploymentState)
    url = serializers.SerializerMethodField()
    team_url = serializers.SerializerMethodField(
        help_text="base URL of the team's language models for clients of OpenAI's API, where it serves there "
        "too; else empty"
    )
    is_current = serializers.SerializerMethodField(
        help_text=("whether the cluster was observed after the last change of the desired state")
    )
    desired = DesiredSerializer(source="*")
    observed = ObservedSerializer(source="*")
    rollout_id = serializers.SerializerMethodField(help_text="ID of the open rollout, if any.")

    class Meta:
        model = Deployment
        fields = [
            "id",
            "team",
            "name",
            "cluster",
            "namespace",
            "environment",
            "url",
            "team_url",
            "state",
            "state_reason",
            "is_current",
            "desired",
            "observed",
            "rollout_id",
            "created_at",
            "first_ready_at",
        ]

    def get_url(self, deployment: Deployment) -> str:
        return deployment_selectors.url_of(deployment)

    def get_team_url(self, deployment: Deployment) -> str:
        return deployment_selectors.team_url_of(deployment)

    def get_is_current(self, deployment: Deployment) -> bool:
        return deployment_selectors.is_current(deployment)

    def get_rollout_id(self, deployment: Deployment) -> int | None:
        open_rollouts: list[Rollout] = getattr(deployment, "open_rollouts", [])
        return open_rollouts[0].pk if open_rollouts else None


class DeploymentEventSerializer(Serializer):
    """An event in the history of a deployment."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    message = serializers.CharField()
    revision_number = serializers.IntegerField(allow_null=True)
    actor_name = serializers.CharField(help_text="Empty if the portal itself did it.")
