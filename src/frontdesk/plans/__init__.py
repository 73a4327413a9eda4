"""Plans and provider groups: reading, changing and owning them."""

from frontdesk.plans.patch import PlanPatch, parse_plan_patch, parse_plan_text
from frontdesk.plans.plan import (
    Plan,
    ProviderGroup,
    change_plan,
    create_plan,
    create_provider_group,
    get_plan,
    list_plans,
    list_provider_groups,
    owners_of_plans,
)

__all__ = [
    "Plan",
    "PlanPatch",
    "ProviderGroup",
    "change_plan",
    "create_plan",
    "create_provider_group",
    "get_plan",
    "list_plans",
    "list_provider_groups",
    "owners_of_plans",
    "parse_plan_patch",
    "parse_plan_text",
]
