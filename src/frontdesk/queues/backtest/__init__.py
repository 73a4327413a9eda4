"""Judges the wait estimate on a past that is known: plays the events again, asks at each arrival, compares with what came."""
