"""The front desk of a virtual-care platform: its plans, their queues, who is eligible, who is invited."""

__version__ = "0.1.0"
