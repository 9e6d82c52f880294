"""Triggers of KEDA that read no metric of the pods: queues outside the cluster, and the clock."""
