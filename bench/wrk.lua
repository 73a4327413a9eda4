-- What `bench.load` has wrk send. wrk … -s wrk.lua URL -- TOKEN          the same GET again and again
--                            wrk … -s wrk.lua URL -- TOKEN TEMPLATE KNOWN FRESH STAMP
-- POSTs of members: every other one is new and takes the next number from FRESH on; the others change one of the KNOWN.
-- TEMPLATE is a body with the member's number, its number, a last name and its number again, as string.format takes them.
local template, known, fresh, stamp
local sent = 0

local function next_body()
  sent = sent + 1
  if sent % 2 == 0 then
    fresh = fresh + 1
    return template:format(fresh - 1, fresh - 1, "Sample", fresh - 1)
  end
  local number = sent * 7919 % known
  return template:format(number, number, stamp .. sent, number)
end

function init(arguments)
  wrk.headers["Accept"] = "application/json"
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer " .. arguments[1]
  if arguments[2] then
    wrk.method = "POST"
    template, known, fresh, stamp = arguments[2], tonumber(arguments[3]), tonumber(arguments[4]), arguments[5]
    request = function() return wrk.format(nil, nil, nil, next_body()) end
  end
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  io.write(string.format(
    '\n{"answered": %d, "elapsed": %f, "p50": %f, "p99": %f, "failed": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, failed
  ))
end
