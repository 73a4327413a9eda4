"""How the people and programs that act are named, in the trail, in histories and in logs."""


def user_actor(user_id: int) -> str:
    """A user of the console, by the id of the user.

    >>> user_actor(12)
    'user:12'
    """
    return f"user:{user_id}"


def user_id_of(actor: str) -> int | None:
    """The id of a user of the console; None for any other actor.

    >>> user_id_of("user:12"), user_id_of("cli:root")
    (12, None)
    """
    number = actor.removeprefix("user:")
    is_user = number != actor and number.isascii() and number.isdecimal()
    return int(number) if is_user else None
