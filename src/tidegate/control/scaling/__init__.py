"""How many processing nodes run: autoscalers, what a node is worth, and both coupled with send rates. Pure."""
