"""What accounts add to the database, by day, their quotas, and what the requests of clients cost.
The types are in `model`.
"""

from frontdesk.usage.counter import UsageCounter as UsageCounter
from frontdesk.usage.counter import count as count
from frontdesk.usage.counter import counter_of as counter_of
from frontdesk.usage.request_costs import RequestCostCounter as RequestCostCounter
from frontdesk.usage.request_costs import oldest_slot as oldest_slot
from frontdesk.usage.store import change_quota as change_quota
from frontdesk.usage.store import find_quota as find_quota
from frontdesk.usage.store import list_quotas as list_quotas
from frontdesk.usage.store import list_request_costs as list_request_costs
from frontdesk.usage.store import list_usage as list_usage
from frontdesk.usage.store import storage_is_left as storage_is_left
