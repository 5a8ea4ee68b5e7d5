"""The MAPE-K loop as a state machine, still pure. Shells feed it readings and carry out its plans."""
