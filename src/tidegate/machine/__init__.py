"""What a machine gives its processes: free ports, files for their owner alone, children that end with them."""
