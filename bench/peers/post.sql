-- Eight digits, as the known members have: to_char would make ######## of more, and many new members one row.
-- Up to 64 clients have numbers of their own. Two that wrote one new number at the same time would violate
-- members_member_id_key, which ON CONFLICT (external_id) does not cover, and pgbench would stop.
\set new 64 * random(16, 1562498) + :client_id
\set known 64 * random(0, 14) + :client_id
\set is_new random(0, 1)
\set n :is_new * :new + (1 - :is_new) * :known
WITH member AS (
    INSERT INTO members (account_id, plan_id, external_id, member_id, first_name, last_name, dob, gender, email, phone, zipcode, city, state, effective_date, expiry_date, metadata)
    VALUES (1, 1, 'AB ' || to_char(:n::bigint, 'FM00000000'), 'M-' || to_char(:n::bigint, 'FM00000000'), 'Robin', 'Name' || :new, '1977-01-11', 'female', 'robin.' || :n || '@example.com', '6175550100', '02134', 'Boston', 'MA', '2026-01-01', '2027-12-31', '{"department":"north"}')
    ON CONFLICT (external_id) DO UPDATE SET last_name = excluded.last_name, updated_at = now()
    RETURNING id, last_name, xmax = 0 AS is_new
), history AS (
    INSERT INTO member_history (member_id, outcome, changes)
    SELECT id, CASE WHEN is_new THEN 'created' ELSE 'updated' END, json_build_object('last_name', last_name) FROM member
)
INSERT INTO audit_entries (actor, action, subject_id) SELECT 'bench', 'member.changed', id FROM member;
