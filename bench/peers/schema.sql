-- The peers' tables: the same columns and unique keys as ours, in a database of their own.
CREATE TABLE tokens (token_hash bytea PRIMARY KEY, account_id bigint NOT NULL);
CREATE TABLE provider_groups (id bigserial PRIMARY KEY, name text NOT NULL, external_id text, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE plans (
    id bigserial PRIMARY KEY, account_id bigint NOT NULL, provider_group_id bigint NOT NULL REFERENCES provider_groups,
    external_id text NOT NULL, name text NOT NULL, description text, active boolean NOT NULL DEFAULT true,
    waiting integer NOT NULL DEFAULT 0, wait_seconds integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE members (
    id bigserial PRIMARY KEY, account_id bigint NOT NULL, plan_id bigint NOT NULL REFERENCES plans,
    external_id varchar(255) NOT NULL UNIQUE, member_id varchar(255) NOT NULL UNIQUE, first_name varchar(100) NOT NULL,
    last_name varchar(100) NOT NULL, dob date NOT NULL, gender varchar(7) NOT NULL, email varchar(254) UNIQUE,
    phone varchar(10), zipcode varchar(10) NOT NULL, city varchar(255), state varchar(255), effective_date date NOT NULL,
    expiry_date date, metadata json NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE member_history (id bigserial PRIMARY KEY, member_id bigint NOT NULL REFERENCES members, outcome text NOT NULL, changes json NOT NULL, changed_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE audit_entries (id bigserial PRIMARY KEY, actor text NOT NULL, action text NOT NULL, subject_id bigint NOT NULL, at timestamptz NOT NULL DEFAULT now());
INSERT INTO provider_groups (name) VALUES ('Doctors');
INSERT INTO plans (account_id, provider_group_id, external_id, name) SELECT 1, 1, 'plan-' || n, 'Plan ' || n FROM generate_series(1, 10) n;
INSERT INTO tokens VALUES (sha256('bench'), 1);
INSERT INTO members (account_id, plan_id, external_id, member_id, first_name, last_name, dob, gender, email, zipcode, effective_date, metadata)
SELECT 1, 1, 'AB ' || to_char(n, 'FM00000000'), 'M-' || to_char(n, 'FM00000000'), 'Robin', 'First', '1977-01-11', 'female', 'robin.' || n || '@example.com', '02134', '2026-01-01', '{}' FROM generate_series(0, 999) n;
