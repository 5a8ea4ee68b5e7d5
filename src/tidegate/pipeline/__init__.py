"""Spark, and nothing but Spark: from slices of the log to Delta tables."""
