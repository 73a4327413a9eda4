"""The front desk of a virtual-care platform: plans, their queues, eligible members, invitations."""

__version__ = "0.1.0"
