"""The benchmarks, the limit and the peers they are measured beside."""
