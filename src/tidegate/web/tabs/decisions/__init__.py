"""The tab with all decisions that the view still has."""
