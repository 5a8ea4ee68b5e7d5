"""Memory that all processes of a gateway share: what they count, what they may pass on, and who is where."""
