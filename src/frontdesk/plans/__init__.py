"""Plans and provider groups: reading, changing and owning them. The nouns are in `model`."""

from frontdesk.plans.changes import parse_plan_patch, patch_plan
from frontdesk.plans.store import (
    external_ids_of,
    find_owners,
    find_plan,
    find_plans,
    get_plan,
    list_plans,
    list_provider_groups,
)

__all__ = [
    "external_ids_of",
    "find_owners",
    "find_plan",
    "find_plans",
    "get_plan",
    "list_plans",
    "list_provider_groups",
    "parse_plan_patch",
    "patch_plan",
]
