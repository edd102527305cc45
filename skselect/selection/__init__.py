"""From labelled rows and a goal to a threshold and its certificate."""
