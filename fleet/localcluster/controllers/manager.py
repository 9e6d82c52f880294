"""Runs the controllers that only read and write objects, on one thread."""

import threading
from collections.abc import Callable

from fleet.localcluster.controllers.claims import Claims
from fleet.localcluster.controllers.deployments import Deployments
from fleet.localcluster.controllers.disruption import DisruptionBudgets
from fleet.localcluster.controllers.garbage import Garbage
from fleet.localcluster.controllers.graphs import InferenceGraphs
from fleet.localcluster.controllers.jobs import Jobs
from fleet.localcluster.controllers.kserve import InferenceServices
from fleet.localcluster.controllers.reconcile import run_until
from fleet.localcluster.controllers.replica_sets import ReplicaSets
from fleet.localcluster.controllers.scaled_jobs import ScaledJobs
from fleet.localcluster.controllers.scheduler import Scheduler
from fleet.localcluster.store import Store


class ControllerManager:
    """What kube-controller-manager, kube-scheduler, KEDA and KServe's controller do. Starts and stops once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stopping = threading.Event()
        self._controllers: list[Callable[[], None]] = [
            Garbage(store).reconcile,
            InferenceServices(store).reconcile,
            InferenceGraphs(store).reconcile,
            Deployments(store).reconcile,
            ReplicaSets(store).reconcile,
            ScaledJobs(store).reconcile,
            Jobs(store).reconcile,
            Claims(store).reconcile,
            Scheduler(store).reconcile,
            DisruptionBudgets(store).reconcile,
        ]
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        run_until(self._stopping, self._store, self._controllers)
