"""Averages of static vectors of words or tokens."""
