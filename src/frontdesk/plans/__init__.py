"""Plans and provider groups: reading, changing and owning them."""

from frontdesk.plans.patch import PlanPatch, parse_plan_patch, parse_plan_text
from frontdesk.plans.plan import (
    NewPlan,
    Plan,
    ProviderGroup,
    change_plan,
    changed_fields,
    create_plan,
    create_provider_group,
    find_owners,
    find_taken,
    get_plan,
    list_plans,
    list_provider_groups,
)

__all__ = [
    "NewPlan",
    "Plan",
    "PlanPatch",
    "ProviderGroup",
    "change_plan",
    "changed_fields",
    "create_plan",
    "create_provider_group",
    "find_owners",
    "find_taken",
    "get_plan",
    "list_plans",
    "list_provider_groups",
    "parse_plan_patch",
    "parse_plan_text",
]
