"""How long a patient who joins a plan's queue now will wait: pure arithmetic over records of a provider group.

docs/wait-estimate.md has the method and its measured error. Every process computes the same number from the same records.
"""
