// The same two endpoints on Fastify and postgres.js: validation by schema, one transaction per POST, a pool of 20.
import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import postgres from 'postgres'

const sql = postgres(process.env.PEER_DATABASE_URL, { max: 20, transform: { undefined: null } })
const app = Fastify()
const text = { type: 'string', maxLength: 255 }
const body = {
  type: 'object',
  required: ['external_id', 'member_id', 'first_name', 'last_name', 'dob', 'gender', 'zipcode', 'effective_date'],
  properties: {
    external_id: text, member_id: text, first_name: text, last_name: text, gender: { enum: ['male', 'female', 'other', 'unknown'] },
    dob: { type: 'string', format: 'date' }, email: { type: 'string', format: 'email' }, phone: { type: 'string', pattern: '^[0-9]{10}$' },
    zipcode: { type: 'string', pattern: '^[0-9]{5}$' }, city: text, state: text, effective_date: { type: 'string', format: 'date' },
    expiry_date: { type: 'string', format: 'date' }, metadata: { type: 'object' }
  }
}
const fields = Object.keys(body.properties)

app.addHook('onRequest', async (request, reply) => {
  const hash = createHash('sha256').update((request.headers.authorization || '').replace('Bearer ', '')).digest()
  const [token] = await sql`SELECT account_id FROM tokens WHERE token_hash = ${hash}`
  if (!token) return reply.code(401).send()
  request.account = token.account_id
})

app.post('/v2/plans/:plan_id/eligibility', { schema: { body } }, async (request, reply) => {
  const given = Object.fromEntries(fields.map(name => [name, request.body[name] ?? null]))
  given.metadata = given.metadata || {}
  return sql.begin(async sql => {
    const [plan] = await sql`SELECT id FROM plans WHERE id = ${request.params.plan_id} AND account_id = ${request.account}`
    if (!plan) return reply.code(404).send()
    const [before] = await sql`SELECT * FROM members WHERE external_id = ${given.external_id} FOR UPDATE`
    const outcome = before ? 'updated' : 'created'
    const [member] = before
      ? await sql`UPDATE members SET ${sql({ ...given, metadata: sql.json(given.metadata) })}, updated_at = now() WHERE id = ${before.id} RETURNING *`
      : await sql`INSERT INTO members ${sql({ ...given, metadata: sql.json(given.metadata), account_id: request.account, plan_id: plan.id })} RETURNING *`
    const changes = Object.fromEntries(fields.filter(name => !before || String(before[name]) !== String(given[name])).map(name => [name, [before ? before[name] : null, given[name]]]))
    await Promise.all([
      sql`INSERT INTO member_history (member_id, outcome, changes) VALUES (${member.id}, ${outcome}, ${sql.json(changes)})`,
      sql`INSERT INTO audit_entries (actor, action, subject_id) VALUES ('bench', ${'eligibility.' + outcome}, ${member.id})`
    ])
    reply.code(before ? 200 : 201)
    const { id, external_id, dob, first_name, last_name, gender, member_id, zipcode, metadata } = member
    return { id, external_id, dob, first_name, last_name, gender, member_id, zipcode, metadata }
  })
})

app.get('/v2/plans', async request => {
  const rows = await sql`SELECT p.*, g.name AS group_name, g.external_id AS group_external_id, g.created_at AS group_created_at
    FROM plans p JOIN provider_groups g ON g.id = p.provider_group_id WHERE p.account_id = ${request.account} ORDER BY p.id`
  return { links: { self: '/v2/plans' }, data: rows.map(p => ({ id: p.id, type: 'plans', external_id: p.external_id, name: p.name, description: p.description,
    active: p.active, created_at: p.created_at, provider_group: { id: p.provider_group_id, type: 'provider_groups', name: p.group_name, external_id: p.group_external_id, created_at: p.group_created_at },
    queue_info: { estimated_wait_time: p.wait_seconds, queue_length: p.waiting, is_active: true } })) }
})

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
