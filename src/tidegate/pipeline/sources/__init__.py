"""Data sources for Spark Structured Streaming."""
