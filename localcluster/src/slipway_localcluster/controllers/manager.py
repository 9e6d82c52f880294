"""Runs the controllers that only read and write objects, on one thread."""

import threading
from collections.abc import Callable

from slipway_localcluster.controllers.claims import Claims
from slipway_localcluster.controllers.deployments import Deployments
from slipway_localcluster.controllers.disruption import DisruptionBudgets
from slipway_localcluster.controllers.garbage import Garbage
from slipway_localcluster.controllers.graphs import InferenceGraphs
from slipway_localcluster.controllers.jobs import Jobs
from slipway_localcluster.controllers.kserve import InferenceServices
from slipway_localcluster.controllers.reconcile import run_until
from slipway_localcluster.controllers.replica_sets import ReplicaSets
from slipway_localcluster.controllers.scaled_jobs import ScaledJobs
from slipway_localcluster.controllers.scheduler import Scheduler
from slipway_localcluster.store import Store


class ControllerManager:
    """The controllers of kube-controller-manager, kube-scheduler, KEDA and KServe. The manager starts and stops
    once.
    """

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
