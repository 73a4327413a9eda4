"""HTTP for both interfaces: requests and responses, endpoints, problem details, logs and metrics."""
