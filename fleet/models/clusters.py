"""Clusters, nodes and pods as last observed. The cluster is the truth; these rows are copies."""

from __future__ import annotations

from django.db import models

from portal.core.leases import Leased


class ClusterKind(models.TextChoices):
    LOCAL = "local", "embedded local cluster"
    KUBECONFIG = "kubeconfig", "kubeconfig file"
    IN_CLUSTER = "in-cluster", "the cluster the portal runs in"
    EKS = "eks", "Amazon EKS"


class Cluster(Leased):
    """Credentials are never stored: kubeconfig and Prometheus token are paths, and EKS uses the portal's
    own AWS role or one that it assumes.
    """

    name = models.CharField(max_length=40, unique=True)
    kind = models.CharField(max_length=12, choices=ClusterKind.choices)
    kubeconfig_path = models.CharField(max_length=400, blank=True, default="")
    eks_name = models.CharField(max_length=100, blank=True, default="")
    role_arn = models.CharField(max_length=200, blank=True, default="")
    region = models.CharField(max_length=30, default="us-east-1")
    # Where clients reach the gateway, without a trailing slash: http://127.0.0.1:8090
    gateway_url = models.CharField(max_length=200)
    gateway_namespace = models.CharField(max_length=63, default="slipway-gateway")
    gateway_name = models.CharField(max_length=63, default="slipway")
    # The address that the portal and its workers use, without a trailing slash; empty: none.
    prometheus_url = models.CharField(max_length=200, blank=True, default="")
    # The path of a file with its bearer token; empty: none.
    prometheus_token_path = models.CharField(max_length=400, blank=True, default="")
    # PEM certificates that are trusted instead of the public ones; empty: the public ones.
    prometheus_ca_pem = models.TextField(blank=True, default="")
    # Amazon Managed Prometheus: requests are signed with the cluster's role.
    has_prometheus_sigv4 = models.BooleanField(default=False)
    # fleet.clusters.domain.serving_policy.ServingPolicy
    serving = models.JSONField(default=dict)
    # fleet.clusters.domain.capabilities.Capabilities
    capabilities = models.JSONField(default=dict)
    is_reachable = models.BooleanField(null=True)
    last_error = models.TextField(blank=True, default="")
    last_seen_at = models.DateTimeField(null=True)
    watch_seen_at = models.DateTimeField(null=True)
    # When ResourceSlices and ResourceClaims were last listed; null: they are not readable.
    devices_read_at = models.DateTimeField(null=True)
    # fleet.gpus.domain.device_taints.TaintRule: its DeviceTaintRules.
    device_taint_rules = models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )
    # fleet.kube.domain.ownership.OtherInstallation: what the last probe found of other installations.
    other_installations = models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """One row per node uid: a node that is replaced under the same name gets another row."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    instance_type = models.CharField(max_length=40, blank=True, default="")
    capacity_type = models.CharField(max_length=20, default="on-demand")
    region = models.CharField(max_length=30, blank=True, default="")
    zone = models.CharField(max_length=30, blank=True, default="")
    gpu_product = models.CharField(max_length=80, blank=True, default="")
    gpu_count = models.PositiveIntegerField(default=0)
    gpu_memory_mib = models.PositiveIntegerField(default=0)
    # Free-form copies of the Kubernetes object, read by fleet.gpus.domain.shares.gpus_of and
    # fleet.kube.domain.quantities: resource names to quantities such as "47810m"
    allocatable = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)
    # fleet.gpus.domain.devices.Devices: what NVIDIA's DRA driver offers; {}: nothing.
    claimable = models.JSONField(
        default=dict, db_default=models.Value({}, output_field=models.JSONField())
    )
    # fleet.gpus.domain.device_taints.TaintedGpu: which of its GPUs a taint of a device takes out.
    tainted_gpus = models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )
    # fleet.observation.domain.node_health: Condition and Taint, lists.
    conditions = models.JSONField(default=list)
    taints = models.JSONField(default=list)
    # fleet.observation.domain.gpu_errors: the last XID of each GPU that had one, and when dcgm-exporter was last read;
    # null: never.
    xids = models.JSONField(null=True)
    xids_read_at = models.DateTimeField(null=True)
    # Of its Neuron devices, when neuron-monitor was last read: of all cores 0 to 1, and memory in use; null: never.
    neuron_utilisation = models.FloatField(null=True)
    neuron_memory_mib = models.PositiveIntegerField(null=True)
    neuron_read_at = models.DateTimeField(null=True)
    is_ready = models.BooleanField(default=False)
    is_schedulable = models.BooleanField(default=True)
    is_simulated = models.BooleanField(default=False)
    # Orders observations of one node; 0 when the cluster's versions are not numeric.
    resource_version = models.BigIntegerField(default=0)
    # Start of metering: the node's creation or the cluster's registration, whichever is later.
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_per_node")]

    def __str__(self) -> str:
        return self.name


class Workload(models.Model):
    """A deployment's revision on a cluster, as fleet knows it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="workloads")
    team = models.ForeignKey("accounts.Team", on_delete=models.PROTECT, related_name="workloads")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=63)
    # Free-form: deployment, revision, model and version, copied into the ledger.
    labels = models.JSONField(default=dict)
    # Names of the Triton models whose counters count; empty: all models of its Triton.
    triton_models = models.JSONField(default=list)
    # The port of its pods and the path where the model server exports metrics.
    metrics_port = models.PositiveIntegerField(default=8002)
    metrics_path = models.CharField(max_length=100, default="/metrics")
    # The highest memory use of a GPU that one of its pods had to itself since `created_at`; null: not measured.
    gpu_memory_peak_mib = models.PositiveIntegerField(null=True)
    # When it ends by itself, as a batch job at its deadline; null: it runs until it is retired.
    ends_at = models.DateTimeField(null=True)
    # When it was registered for the revision that it stands for now: a later deployment may have the same name.
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name"], name="one_workload_per_name"
            )
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Pod(models.Model):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pods")
    workload = models.ForeignKey(
        Workload, on_delete=models.SET_NULL, null=True, related_name="pods"
    )
    node = models.ForeignKey(Node, on_delete=models.SET_NULL, null=True, related_name="pods")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    # Needed in addition to `node`, which is empty until the node itself is observed.
    node_name = models.CharField(max_length=253, blank=True, default="")
    resource_version = models.BigIntegerField(default=0)
    labels = models.JSONField(default=dict)
    phase = models.CharField(max_length=20, default="Pending")
    # The cluster's reason for a pod that is not ready: "Unschedulable", "0/3 nodes are available: …"
    reason = models.CharField(max_length=100, blank=True, default="")
    message = models.TextField(blank=True, default="")
    is_ready = models.BooleanField(default=False)
    restart_count = models.PositiveIntegerField(default=0)
    gpu_resource = models.CharField(max_length=60, blank=True, default="")
    gpu_units = models.PositiveIntegerField(default=0)
    # Of these, what it requests of a device plugin and not by claim.
    plugin_units = models.PositiveIntegerField(default=0, db_default=0)
    # fleet.gpus.domain.claimed_gpus.ClaimedDevice: the devices of its claims. `gpu_units` includes those of its resource.
    devices = models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )
    # The amounts that the scheduler reserves for it.
    cpu_millicores = models.PositiveBigIntegerField(default=0)
    memory_bytes = models.PositiveBigIntegerField(default=0)
    scheduled_at = models.DateTimeField(null=True)
    # The first time; `is_ready` is the current state.
    ready_at = models.DateTimeField(null=True)
    # Seconds of each step of the first start (fleet.observation.domain.pod_start.STEPS); empty
    # until then, and when a container was restarted before.
    start_seconds = models.JSONField(default=dict)
    # On which it may run, in its order; empty: any, or observed before this was recorded.
    instance_types = models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )
    created_at = models.DateTimeField()
    # When it released its GPUs: its containers ended, or it was deleted.
    ended_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_per_pod")]
        indexes = [
            models.Index(
                fields=["cluster", "namespace"],
                condition=models.Q(gone_at=None),
                name="pods_that_exist",
            )
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
