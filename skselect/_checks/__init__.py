"""Checks of user data that several rooms share. They convert or refuse, and compute nothing.

A message names the argument, says what it was, and what would be right.
"""
