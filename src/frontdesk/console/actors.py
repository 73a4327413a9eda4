"""Who did something, by name: users of the console, API clients, operators at the command line."""

from collections.abc import Collection, Mapping

from frontdesk import access
from frontdesk.audit.actors import user_id_of
from frontdesk.db import Tx
from frontdesk.reach import Reach
from frontdesk.users.directory import find_users
from frontdesk.users.model import User

_COMMAND_LINE = "cli:"


def names_of(
    tx: Tx,
    actors: Collection[str | None],
    reach: Reach,
    reader: User,
    *,
    users: Mapping[int, User] | None = None,
) -> Mapping[str, str]:
    """A name for each of these actors, as `reader` is told: `you`, a user's name and e-mail, a client's
    name, `an operator`, or the actor itself if it is known no more. `users` are those among them, by
    id, where the caller has read them.
    """
    known = {actor for actor in actors if actor}
    if users is None:
        users = find_users(tx, {id_ for id_ in map(user_id_of, known) if id_ is not None})
    names = {user.actor: _name(user, reader) for user in users.values() if user.actor in known}
    programs = {actor for actor in known - names.keys() if not actor.startswith(_COMMAND_LINE)}
    if programs:
        names |= access.find_client_names(tx, reach, programs)
    for actor in known:
        if actor.startswith(_COMMAND_LINE):
            names[actor] = "an operator"
    return {actor: names.get(actor, actor) for actor in known} | {reader.actor: "you"}


def _name(user: User, reader: User) -> str:
    """The name that the user has chosen, with what nobody chooses: two may have one name, and a name
    may be anything. An account is told no address of the service's own people.
    """
    if user.is_of_installation and not reader.is_of_installation:
        return f"{user.name} (of the service)"
    return f"{user.name} ({user.email})"
