"""Whether a policy keeps its guarantee after deployment: asked once, or watched case by case."""
