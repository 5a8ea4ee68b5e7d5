"""The MAPE-K loop as a state machine, still pure. Shells feed it observations and carry out its plans."""
