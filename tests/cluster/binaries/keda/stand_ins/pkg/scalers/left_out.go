package scalers

// The kind of metric of all scalers that read something outside the cluster.
const externalMetricType = "External"
