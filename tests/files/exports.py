"""Exports as HR systems write them, with invented people."""

import csv
import io
from collections.abc import Iterable, Sequence

FIRST = ("Robin", "Lee", "Kim", "Noor", "Sam")
LAST = ("Sample", "Muster", "Doe", "Exemple")


def names_in(text: str, delimiter: str = ",") -> list[str]:
    return text.split(delimiter)


SYNTHEA = names_in(
    "Id,BIRTHDATE,DEATHDATE,SSN,DRIVERS,PASSPORT,PREFIX,FIRST,MIDDLE,LAST,SUFFIX,MAIDEN,MARITAL,"
    "RACE,ETHNICITY,GENDER,BIRTHPLACE,ADDRESS,CITY,STATE,COUNTY,FIPS,ZIP,LAT,LON,"
    "HEALTHCARE_EXPENSES,HEALTHCARE_COVERAGE,INCOME"
)
HR = names_in(
    "Employee ID,Legal First Name,Legal Middle Name,Legal Last Name,Preferred Name,DOB,Sex,SSN,"
    "Home Address - Line 1,Home Address - City,Home Address - State,Home Address - Zip,Work Email,"
    "Home Phone,Hire Date,Coverage Effective Date,Term Date,Rel. to Subscriber,Medical Plan,"
    "Department"
)


def written(rows: Iterable[Sequence[str]], delimiter: str = ",") -> bytes:
    page = io.StringIO()
    csv.writer(page, delimiter=delimiter).writerows(rows)
    return page.getvalue().encode()


def synthea() -> bytes:
    """Synthea's patients.csv: ISO dates, M and F, names of states, no date of coverage."""
    patients = [SYNTHEA]
    for n in range(40):
        known = {
            "Id": f"7c1f{n:04x}-0000-4000-8000-00000000{n:04x}",
            "BIRTHDATE": f"19{50 + n}-03-{n % 28 + 1:02}",
            "SSN": f"999-10-{1000 + n}",
            "FIRST": f"{FIRST[n % 5]}{n + 100}",
            "LAST": f"{LAST[n % 4]}{n + 300}",
            "GENDER": "MF"[n % 2],
            "CITY": "Boston",
            "STATE": "Massachusetts",
            "COUNTY": "Suffolk County",
            "ZIP": f"02{100 + n}",
        }
        patients.append([known.get(name, "") for name in SYNTHEA])
    return written(patients)


def hr_export() -> bytes:
    """Twenty columns: US dates, M and F, zips without their zeros, extensions of phones, a line
    with the total.
    """
    rows = []
    for n in range(40):
        name = f"{FIRST[n % 5]},{'J'[: n % 2]},{LAST[n % 4]},"
        person = f"{1000 + n},{name},{n % 12 + 1}/{n % 28 + 1}/{1960 + n},{'MF'[n % 2]},123-45-{6000 + n}"
        home = f"1 Example Street,Boston,MA,{2134 + n},p{n}@example.com,(617) 555-{n:04} x{n}"
        relation = ("Self", "Spouse", "Child")[n % 3]
        rows.append(names_in(f"{person},{home},5/1/2019,1/1/2026,,{relation},PPO 500,North"))
    return written([HR, *rows, ["Total", "40", *[""] * 18]])


def excel_export() -> bytes:
    """Semicolons, titles, names in one column, serial numbers for dates, 9999-12-31 for open."""
    titles = ["Members of Example Ltd", "as of 01.02.2026"]
    header = "Emp #;Name;Birth Date;Gender;Zip Code;Phone;Eff Date;Expiration Date;Relationship"
    rows = []
    for n in range(40):
        gender = ("Male", "Female", "Non-binary")[n % 3]
        relation = ("EE", "SP", "CH")[n % 3]
        person = f"{1000 + n};{LAST[n % 4]}, {FIRST[n % 5]} Q;{21000 + 97 * n};{gender}"
        rows.append(f"{person};10001-1234;617.555.0100;46023;2958465;{relation}")
    return written([names_in(line, ";") for line in (*titles, header, *rows)], ";")
