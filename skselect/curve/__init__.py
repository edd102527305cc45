"""Risk against coverage at every threshold: one sort, one pass, then look-ups."""
