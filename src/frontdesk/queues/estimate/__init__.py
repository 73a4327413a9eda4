"""The wait of a patient that joins a plan's queue now: pure arithmetic over records of a provider
group.

docs/wait-estimate.md has the method and its measured error. Every process computes the same number
from the same records.
"""
