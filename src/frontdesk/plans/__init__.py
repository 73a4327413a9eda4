"""Plans and provider groups: reading, changing and owning them. The nouns are in `model`."""

from frontdesk.plans.changes import parse_plan_patch as parse_plan_patch
from frontdesk.plans.changes import patch_plan as patch_plan
from frontdesk.plans.store import external_ids_of as external_ids_of
from frontdesk.plans.store import find_owners as find_owners
from frontdesk.plans.store import find_plan as find_plan
from frontdesk.plans.store import find_plans as find_plans
from frontdesk.plans.store import get_plan as get_plan
from frontdesk.plans.store import list_plans as list_plans
from frontdesk.plans.store import list_provider_groups as list_provider_groups
