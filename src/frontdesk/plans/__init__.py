"""Plans and provider groups: reading, changing and owning them."""

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
    "ProviderGroup",
    "change_plan",
    "create_plan",
    "create_provider_group",
    "get_plan",
    "list_plans",
    "list_provider_groups",
    "owners_of_plans",
]
