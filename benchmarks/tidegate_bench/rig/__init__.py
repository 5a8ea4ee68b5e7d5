"""What several benchmarks stand on: an installation, its nodes, loads, peers and what they cost."""
