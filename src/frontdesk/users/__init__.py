"""Users of the console: who they are, what their roles allow, how they sign in, their sessions."""

from frontdesk.users.directory import delete_ended as delete_ended
from frontdesk.users.directory import delete_expired as delete_expired
from frontdesk.users.sessions import end_sessions_of_account as end_sessions_of_account
