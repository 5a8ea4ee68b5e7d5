"""Benchmarks, each a ratio to a peer in the same run: ``tidegate bench NAME``. Not part of the product."""
