"""The same two endpoints as most would write them: FastAPI, Pydantic, SQLAlchemy's ORM, a session
per request.
"""

import hashlib
import os
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Response
from pydantic import BaseModel, EmailStr, Field
from sqlalchemy import MetaData, create_engine, event, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import Session, joinedload, sessionmaker

url = os.environ["PEER_DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
engine = create_engine(url, pool_size=20, max_overflow=20)
sessions = sessionmaker(engine, expire_on_commit=False)
tables = MetaData()


@event.listens_for(tables, "column_reflect")
def rename(_inspector: object, _table: object, column: dict[str, Any]) -> None:
    if column["name"] == "metadata":  # the ORM has a use of its own for the name
        column["key"] = "metadata_"


# The classes are made from the tables once, at the start.
Base: Any = automap_base(metadata=tables)
Base.prepare(autoload_with=engine)
Token = Base.classes.tokens
Plan = Base.classes.plans
Member = Base.classes.members
History = Base.classes.member_history
Audit = Base.classes.audit_entries


class Body(BaseModel):
    external_id: str = Field(max_length=255)
    member_id: str = Field(max_length=255)
    first_name: str = Field(max_length=100)
    last_name: str = Field(max_length=100)
    dob: date
    gender: str
    email: EmailStr | None = None
    phone: str | None = Field(None, pattern=r"^[0-9]{10}$")
    zipcode: str = Field(pattern=r"^[0-9]{5}$")
    city: str | None = None
    state: str | None = None
    effective_date: date
    expiry_date: date | None = None
    metadata: dict[str, str] = {}


def session() -> Iterator[Session]:
    with sessions() as opened:
        yield opened


Db = Annotated[Session, Depends(session)]


def account(db: Db, authorization: Annotated[str, Header()]) -> int:
    token = db.get(Token, hashlib.sha256(authorization.removeprefix("Bearer ").encode()).digest())
    if token is None:
        raise HTTPException(401)
    return int(token.account_id)


Account = Annotated[int, Depends(account)]
app = FastAPI()


@app.post("/v2/plans/{plan_id}/eligibility")
def enrol(
    plan_id: int, body: Body, db: Db, account_id: Account, response: Response
) -> dict[str, Any]:
    plan = db.get(Plan, plan_id)
    if plan is None or plan.account_id != account_id:
        raise HTTPException(404)
    given = body.model_dump(exclude={"metadata"}) | {"metadata_": body.metadata}
    member = db.scalar(
        select(Member).where(Member.external_id == body.external_id).with_for_update()
    )
    response.status_code = 200 if member else 201
    if member is None:
        member = Member(account_id=account_id, plan_id=plan_id, **given)
        db.add(member)
        changes = {name: [None, str(value)] for name, value in given.items()}
    else:
        before = {name: getattr(member, name) for name in given}
        changes = {
            name: [str(before[name]), str(value)]
            for name, value in given.items()
            if before[name] != value
        }
        for name, value in given.items():
            setattr(member, name, value)
        member.updated_at = func.now()
    try:
        db.flush()
        outcome = "created" if response.status_code == 201 else "updated"
        db.add(History(member_id=member.id, outcome=outcome, changes=changes))
        db.add(Audit(actor="bench", action=f"eligibility.{outcome}", subject_id=member.id))
        db.commit()
    except IntegrityError:
        raise HTTPException(422) from None
    return {
        "id": member.id,
        "external_id": member.external_id,
        "dob": member.dob,
        "first_name": member.first_name,
        "last_name": member.last_name,
        "gender": member.gender,
        "member_id": member.member_id,
        "zipcode": member.zipcode,
        "metadata": member.metadata_,
    }


@app.get("/v2/plans")
def plans(db: Db, account_id: Account) -> dict[str, Any]:
    of_account = select(Plan).where(Plan.account_id == account_id).order_by(Plan.id)
    found = db.scalars(of_account.options(joinedload(Plan.provider_groups)))
    return {
        "links": {"self": "/v2/plans"},
        "data": [
            {
                "id": plan.id,
                "type": "plans",
                "external_id": plan.external_id,
                "name": plan.name,
                "active": plan.active,
                "description": plan.description,
                "created_at": plan.created_at,
                "provider_group": {
                    "id": plan.provider_groups.id,
                    "type": "provider_groups",
                    "name": plan.provider_groups.name,
                    "external_id": plan.provider_groups.external_id,
                    "created_at": plan.provider_groups.created_at,
                },
                "queue_info": {
                    "estimated_wait_time": plan.wait_seconds,
                    "queue_length": plan.waiting,
                    "is_active": True,
                },
            }
            for plan in found
        ],
    }
