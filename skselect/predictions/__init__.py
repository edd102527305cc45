"""Predictions for labelled rows, their confidence and their loss. Labels end here."""
