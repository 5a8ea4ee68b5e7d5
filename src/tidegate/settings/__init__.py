"""Every setting there is, and how a mistake in one is said."""
