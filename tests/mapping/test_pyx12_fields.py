"""A second opinion on the members of an 834: pyx12 walks the loops of the guide, and each field agrees with what it finds."""

import io
import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from frontdesk.eligibility.model import Action
from frontdesk.formats.model import Format
from frontdesk.mapping.model import Row
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import sample_members
from tests.files.exports import names_in
from tests.formats.reading import file_834, rows_of

params, error_handler, x12context = (
    import_module(f"pyx12.{name}") for name in ("params", "error_handler", "x12context")
)

MEDICAL = {"HLT", "HMO", "PPO", "POS", "EPO", "MM", "IND", "PRA"}
FILE_DATE = "20261120"
SEXES = {"F": "female", "M": "male", "U": "unknown"}


def walked(text: str) -> list[Any]:
    """pyx12's trees of the members."""
    reader = x12context.X12ContextReader(
        params.params(), error_handler.errh_null(), io.StringIO(text.replace("\n", ""))
    )
    return [node for node in reader.iter_segments("2000") if node.id == "2000"]


def day(text: str | None) -> str | None:
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if text else None


PERSON = names_in(
    "first_name NM104,last_name NM103,middle_name NM105,city N401,state N402,zipcode N403,county N406"
)


def expected(node: Any) -> dict[str, Any]:
    """The fields of the member by pyx12's paths, and the access by the one medical coverage that the member has."""
    get = node.get_value
    told = {name: get(f"2100A/{path}") for name, path in (each.split() for each in PERSON)}
    told |= {"dob": day(get("2100A/DMG02")), "gender": SEXES.get(get("2100A/DMG03"))}
    told["relationship_code_hipaa"] = get("INS02")
    told["subscriber_relationship"] = {"Y": "Primary", "N": "Dependent"}[get("INS01")]
    contacts = {get(f"2100A/PER{n:02d}"): get(f"2100A/PER{n + 1:02d}") for n in (3, 5, 7)}
    told["email"] = contacts.get("EM")
    told["phone"] = next((contacts[kind] for kind in ("CP", "HP", "TE") if kind in contacts), None)
    for coverage in node.select("2300"):
        if coverage.get_value("HD03") in MEDICAL:
            begin, end = (coverage.get_value(f"DTP[{kind}]03") for kind in ("348", "349"))
            told |= {"effective_date": day(begin), "expiry_date": day(end)}
            told["medical_plan_description"] = coverage.get_value("HD04") or coverage.get_value("HD03")
    told["external_id"] = f"{get('REF[0F]02')}-{get('REF[17]02')}"
    return {name: value for name, value in told.items() if value}


def found(row: Row) -> dict[str, Any]:
    ours = {"member_id", "payor_name", "relationship_code"}
    return {name: value for name, value in row.values.items() if value and name not in ours}


def sample() -> str:
    out = io.BytesIO()
    list(write_sample(sample_members(60, seed=9), Format.X12, out))
    return out.getvalue().decode()


# A member with the loops and segments of the guide, in its order; each of those with a question mark is there or not.
INVENTED = """\
INS*{role}*021*28*A***FT~REF*0F*FAM{n:04d}~
?REF*1L*GROUP7~
REF*17*{person}~
?REF*23*C{n:07d}~
REF*3H*CASE1~REF*DX*DEPT~DTP*356*D8*20200101~DTP*303*D8*20261119~NM1*IL*1*Last{n}*First{n}*{middle}{number}~
?PER*IP**{phone}*6175550{n:03d}*EM*m{n}@example.com~
N3*1 Example Street*Apt 2~N4*Boston*MA*02134{county}~DMG*D8*19770111*{sex}*M~
?EC*01~ICM*7*1000*40~AMT*P3*10~
?HLH*N*70*150~LUI*LE*EN**6~
?NM1*70*1*Wrong*Person~DMG*D8*19991231*F~
?NM1*31*1~N3*Box 1~N4*Mailing*TX*73301~
?NM1*36*2*Employer~PER*EP**TE*9995550100*EM*boss@example.com~N3*2 Street~N4*Work*TX*73301~
?NM1*M8*2*School~N3*3 Street~N4*Study*TX*73301~
?NM1*S1*1*Parent*Some~PER*PQ**HP*9995550101~N3*4 Street~N4*Home*TX*73301~
?NM1*QD*1*Agent*Some~N3*5 Street~N4*Office*TX*73301~
?DSB*2~DTP*360*D8*20260101~DTP*361*D8*20260201~
?HD*021**DEN*Teeth*IND~DTP*348*D8*20100101~DTP*349*D8*20261231~
HD*021**{line}*{plan}*FAM~DTP*348*D8*20260{month}01~
?DTP*349*D8*20271231~
REF*1L*GROUP8~
?LX*1~NM1*P3*1*Doctor*Good****XX*1234567893*25~N4*Clinic*TX*73301~
?COB*P*POLICY9*5~REF*60*X~DTP*344*D8*20250101~NM1*IN*2*Other Payor~N4*Payor*TX*73301~
?HD*021**VIS*Eyes*FAM~DTP*348*D8*20300101~
?LS*2700~LX*1~N1*75*DIVISION~REF*17*NORTH~DTP*007*D8*20260101~LE*2700~
"""
CHOICES = names_in(
    f"role Y*18 N*19 N*01,phone CP HP TE,sex F M U,line {' '.join(sorted(MEDICAL))},month 1 2 3 4 5 6 7 8 9,plan  Gold,"
    "middle  Lee,county  **CY*Suffolk,number ***34*987654321 ***ZZ*Z0000 "
)


def invented(chance: random.Random) -> Iterator[str]:
    for n in range(40):
        chosen = {name: chance.choice(each) for name, *each in (choice.split(" ") for choice in CHOICES)}
        segments = [line for line in INVENTED.splitlines() if line[0] != "?" or chance.random() < 0.5]
        yield "".join(line.lstrip("?") for line in segments).format(n=n, person=n % 90 + 10, **chosen)


@pytest.mark.parametrize(
    "text",
    [sample(), *(file_834(*invented(random.Random(seed))) for seed in range(3))],
    ids=["sample", "invented-0", "invented-1", "invented-2"],
)
def test_each_field_is_what_pyx12_finds(text: str) -> None:
    rows = rows_of(text)
    assert {row.action for row in rows} == {Action.ENROL}
    for row, node in zip(rows, walked(text), strict=True):
        assert found(row) == expected(node)
