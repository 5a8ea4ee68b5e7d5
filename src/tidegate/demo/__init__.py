"""The story of the product in two minutes: the same flood without and with protection, measured, and a verdict."""
