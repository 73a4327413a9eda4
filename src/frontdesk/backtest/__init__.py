"""Measures the wait estimate on past events: replays them, computes an estimate at each arrival,
compares it with the wait.
"""
