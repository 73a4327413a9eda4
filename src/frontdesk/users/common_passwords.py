"""Passwords that are tried first.

Lists of leaked passwords hold mostly passwords of 6 to 10 characters, which the rule of 12
characters refuses already. What people make of them to reach 12 follows a few habits, so this list
is made by rule: words and key sequences of the kind that leads the published lists, each repeated,
or with an ending that people add. They were written down by hand, neither copied nor measured. It
has over 3,000 passwords of 12 characters or more.
"""

_SHORTEST = 12

# Words, names, teams, keys.
_WORDS = """
password passw0rd p@ssword p@ssw0rd pa55word passwort passport welcome welcome1 letmein iloveyou
loveyou ilovegod jesus christ blessed sunshine princess football baseball basketball superman batman
dragon monkey master shadow michael jordan jennifer jessica ashley charlie daniel anthony thomas
robert andrew joshua matthew hunter killer trustno1 starwars pokemon freedom whatever mustang
corvette ferrari mercedes harley yankees cowboys steelers liverpool chelsea arsenal barcelona
computer internet samsung iphone google facebook microsoft windows secret topsecret access login
admin administrator administration root superuser manager support helpdesk default changeme
changethis temporary temppass newpassword mypassword testing testtest tester summer winter spring
autumn january february march april august september october november december monday friday flower
butterfly rainbow chocolate cookie cheese banana orange purple yellow diamond silver golden pepper
ginger buster maggie tigger snoopy hello hello123 helloworld goodmorning company business office
employee benefits health healthcare hospital doctor nurse medical medicine patient insurance america
american newyork california texas florida boston chicago qwerty qwertyuiop qwerty123 asdfghjkl
zxcvbnm qazwsx 1qaz2wsx zaq12wsx q1w2e3r4 1q2w3e4r abc123 abcd1234 a1b2c3d4 123abc 123qwe
"""
_ENDINGS = """
1 12 123 1234 12345 123456 1234567 12345678 123456789 1234567890 0 00 000 0000 01 007 11 111 1111 2
22 222 3 321 4321 54321 654321 69 7 77 777 8 88 888 9 99 999 1! 12! 123! 1234! 12345! ! !! !!! @ # $
? . * !1 !12 !123 @1 @12 @123 @1234 #1 #123 _1 _123 -123 .123 abc qwe qwerty 2020 2021 2022 2023
2024 2025 2026 2027 2024! 2025! 2026! 2027! @2024 @2025 @2026 @2027 123456! 1234567! 12345678!
"""
_SEQUENCES = (
    "01234567890123456789",
    "12345678901234567890",
    "09876543210987654321",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiopasdfghjklzxcvbnm",
    "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb6yhn",
    "qazwsxedcrfvtgbyhnujm",
    "zaq12wsxcde34rfv",
    "147258369147258369",
    "aabbccddeeffgghh",
    "correcthorsebatterystaple",
    "thequickbrownfox",
    "iloveyousomuch",
    "ilovemyfamily",
    "letmeinletmein",
    "opensesame1234",
)


def _made() -> set[str]:
    words = _WORDS.split()
    made = {word * times for word in words for times in (2, 3)}
    made |= {word + ending for word in words for ending in _ENDINGS.split()}
    for sequence in _SEQUENCES:
        made |= {sequence[:length] for length in range(_SHORTEST, len(sequence) + 1)}
    for sign in map(chr, range(33, 127)):
        made |= {sign * length for length in range(_SHORTEST, 21)}
    return {password.lower() for password in made if len(password) >= _SHORTEST}


COMMON_PASSWORDS = frozenset(_made())  # in lower case
