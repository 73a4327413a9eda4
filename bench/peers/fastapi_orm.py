"""The same two endpoints as most would write them: FastAPI, Pydantic, SQLAlchemy's ORM, a session per request."""

import hashlib
import os
from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Response
from pydantic import BaseModel, EmailStr, Field
from sqlalchemy import JSON, ForeignKey, create_engine, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, sessionmaker

engine = create_engine(os.environ["PEER_DATABASE_URL"], pool_size=20, max_overflow=20)
sessions = sessionmaker(engine, expire_on_commit=False)


class Table(DeclarativeBase):
    """What every table shares."""


class Token(Table):
    __tablename__ = "tokens"
    token_hash: Mapped[bytes] = mapped_column(primary_key=True)
    account_id: Mapped[int]


class ProviderGroup(Table):
    __tablename__ = "provider_groups"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    external_id: Mapped[str | None]
    created_at: Mapped[datetime]


class Plan(Table):
    __tablename__ = "plans"
    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int]
    provider_group_id: Mapped[int] = mapped_column(ForeignKey("provider_groups.id"))
    external_id: Mapped[str]
    name: Mapped[str]
    description: Mapped[str | None]
    active: Mapped[bool]
    waiting: Mapped[int]
    wait_seconds: Mapped[int]
    created_at: Mapped[datetime]
    provider_group: Mapped[ProviderGroup] = relationship(lazy="joined")


class Member(Table):
    __tablename__ = "members"
    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int]
    plan_id: Mapped[int]
    external_id: Mapped[str]
    member_id: Mapped[str]
    first_name: Mapped[str]
    last_name: Mapped[str]
    dob: Mapped[date]
    gender: Mapped[str]
    email: Mapped[str | None]
    phone: Mapped[str | None]
    zipcode: Mapped[str]
    city: Mapped[str | None]
    state: Mapped[str | None]
    effective_date: Mapped[date]
    expiry_date: Mapped[date | None]
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSON)
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())


class History(Table):
    __tablename__ = "member_history"
    id: Mapped[int] = mapped_column(primary_key=True)
    member_id: Mapped[int]
    outcome: Mapped[str]
    changes: Mapped[dict[str, Any]] = mapped_column(JSON)


class Audit(Table):
    __tablename__ = "audit_entries"
    id: Mapped[int] = mapped_column(primary_key=True)
    actor: Mapped[str]
    action: Mapped[str]
    subject_id: Mapped[int]


class Invitation(Table):
    __tablename__ = "invitations"
    id: Mapped[int] = mapped_column(primary_key=True)
    member_id: Mapped[int]
    address: Mapped[str]
    state: Mapped[str]


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
    invite_immediately: bool = False


def session() -> Iterator[Session]:
    with sessions() as opened:
        yield opened


Db = Annotated[Session, Depends(session)]


def account(db: Db, authorization: Annotated[str, Header()]) -> int:
    token = db.get(Token, hashlib.sha256(authorization.removeprefix("Bearer ").encode()).digest())
    if token is None:
        raise HTTPException(401)
    return token.account_id


Account = Annotated[int, Depends(account)]
app = FastAPI()


@app.post("/v2/plans/{plan_id}/eligibility")
def enrol(plan_id: int, body: Body, db: Db, account_id: Account, response: Response) -> dict[str, Any]:
    plan = db.get(Plan, plan_id)
    if plan is None or plan.account_id != account_id:
        raise HTTPException(404)
    given = body.model_dump(exclude={"invite_immediately", "metadata"}) | {"metadata_": body.metadata}
    member = db.scalar(select(Member).where(Member.external_id == body.external_id).with_for_update())
    response.status_code = 200 if member else 201
    if member is None:
        member = Member(account_id=account_id, plan_id=plan_id, **given)
        db.add(member)
        changes = {name: [None, str(value)] for name, value in given.items()}
    else:
        changes = {
            name: [str(getattr(member, name)), str(value)]
            for name, value in given.items()
            if getattr(member, name) != value
        }
        for name, value in given.items():
            setattr(member, name, value)
    try:
        db.flush()
        outcome = "created" if response.status_code == 201 else "updated"
        db.add(History(member_id=member.id, outcome=outcome, changes=changes))
        db.add(Audit(actor="bench", action=f"eligibility.{outcome}", subject_id=member.id))
        if outcome == "created" and body.invite_immediately and body.email:
            db.add(Invitation(member_id=member.id, address=body.email, state="pending"))
        db.commit()
    except IntegrityError:
        raise HTTPException(422) from None
    return {"id": member.id, "external_id": member.external_id, "dob": member.dob, "first_name": member.first_name,
            "last_name": member.last_name, "gender": member.gender, "member_id": member.member_id,
            "zipcode": member.zipcode, "metadata": member.metadata_}  # fmt: skip


@app.get("/v2/plans")
def plans(db: Db, account_id: Account) -> dict[str, Any]:
    found = db.scalars(select(Plan).where(Plan.account_id == account_id).order_by(Plan.id))
    return {"links": {"self": "/v2/plans"}, "data": [
        {"id": plan.id, "type": "plans", "external_id": plan.external_id, "name": plan.name, "active": plan.active,
         "description": plan.description, "created_at": plan.created_at, "provider_group": {
            "id": plan.provider_group.id, "type": "provider_groups", "name": plan.provider_group.name,
            "external_id": plan.provider_group.external_id, "created_at": plan.provider_group.created_at},
         "queue_info": {"estimated_wait_time": plan.wait_seconds, "queue_length": plan.waiting, "is_active": True}}
        for plan in found]}  # fmt: skip
