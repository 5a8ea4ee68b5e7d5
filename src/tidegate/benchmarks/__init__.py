"""Benchmarks: real brokers, real Spark, real clients, and every figure as a ratio to a peer in the same run."""
