"""How the people and programs that act are named, in the trail, in histories and in logs."""


def user_actor(user_id: int) -> str:
    """A user of the console, by the id of the user.

    >>> user_actor(12)
    'user:12'
    """
    return f"user:{user_id}"
