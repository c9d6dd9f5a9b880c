"""What happens to a session in one step, in the server's own language and by the server's clock.

`ledger` fields: `fence` (the newest given out), `state`, and while a claim is held `holder` (its
request id), `held` (its fence), `until` (end of its lease, ms) and `told` (cancellation was asked
for).  A claim is live while it is held and its lease has not run out.  Values in `done` are
`<fence>:<outcome>`, or `0:<attempt>` for a turn that was cancelled while nobody ran it.

All scripts take the keys ledger turns done order tries recent, and ARGV ttl_ms max_done first.
"""

from turnline.store.valkey.commands import Script

_PRELUDE = """#!lua
local LEDGER, TURNS, DONE, ORDER, TRIES, RECENT = unpack(KEYS)
local TTL, MAX_DONE = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

-- Lua shortens whole numbers of more than 14 digits unless told otherwise.
local function text(number)
  return string.format('%.0f', number)
end

local fields = redis.call('HMGET', LEDGER, 'holder', 'held', 'until', 'told')
local holder, held, untill, told = fields[1], fields[2], tonumber(fields[3] or '0'), fields[4]

-- A session lives for its TTL after each use, and always as long as its claim.
local function keep()
  local ttl = TTL
  if holder then ttl = math.max(ttl, untill - now) end
  ttl = text(ttl)
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIRE', key, ttl)
  end
end

-- End a turn, unless it has ended; of too many the oldest are forgotten.
local function finish(request, value)
  local attempts = redis.call('HGET', TRIES, request) or '0'
  redis.call('HDEL', TRIES, request)
  redis.call('ZREM', RECENT, request)
  if redis.call('HSETNX', DONE, request, value or ('0:' .. attempts)) == 1 then
    redis.call('RPUSH', ORDER, request)
    while redis.call('LLEN', ORDER) > MAX_DONE do
      redis.call('HDEL', DONE, redis.call('LPOP', ORDER))
    end
  end
end

local function free()
  redis.call('HDEL', LEDGER, 'holder', 'held', 'until', 'told')
  holder, held, untill, told = false, false, 0, false
end

-- Free the session; a turn whose cancellation was asked for is not tried again.
local function let_go()
  local request, cancelled = holder, told
  free()
  if cancelled then finish(request) end
end

local function let_go_if_lapsed()
  if holder and untill <= now then let_go() end
end

-- Why a claim may write nothing; nil if it may.
local function refusal(fence)
  if held ~= fence then return 'superseded' end
  if untill <= now then return 'lapsed' end
end
"""

# ARGV ... request lease_ms max_history
# -> {'done', value} | {'busy', ms} | {'new', fence, attempt, state, records}
BEGIN = Script.of(
    _PRELUDE,
    """
local request, lease, max_history = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
let_go_if_lapsed()
local ended = redis.call('HGET', DONE, request)
if ended then
  keep()
  return {'done', ended}
end
if holder then
  keep()
  return {'busy', untill - now}
end
-- Above every fence before, those of a session that expired or was lost included: no session is
-- claimed more than once a microsecond.
local micros = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local fence = math.max(tonumber(redis.call('HGET', LEDGER, 'fence') or '0') + 1, micros)
holder, held, untill = request, text(fence), now + lease
redis.call('HSET', LEDGER, 'fence', held, 'holder', holder, 'held', held, 'until', text(untill))
local attempt = redis.call('HINCRBY', TRIES, request, 1)
redis.call('ZADD', RECENT, held, request)
if redis.call('ZCARD', RECENT) > MAX_DONE then
  redis.call('HDEL', TRIES, redis.call('ZPOPMIN', RECENT)[1])
end
keep()
return {'new', held, attempt, redis.call('HGET', LEDGER, 'state') or '',
  redis.call('LRANGE', TURNS, -max_history, -1)}
""",
)

# For what keeps or frees rather than adds: it goes on when the server's memory is full.
_FRUGAL_PRELUDE = _PRELUDE.replace("#!lua", "#!lua flags=allow-oom", 1)

# ARGV ... fence lease_ms -> refusal or nothing
RENEW = Script.of(
    _FRUGAL_PRELUDE,
    """
local refused = refusal(ARGV[3])
if refused then return refused end
untill = now + tonumber(ARGV[4])
redis.call('HSET', LEDGER, 'until', text(untill))
keep()
""",
)

# ARGV ... request fence outcome state max_history [record] -> refusal or nothing
COMMIT = Script.of(
    _PRELUDE,
    """
local request, fence, outcome, state = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ended = redis.call('HGET', DONE, request)
if ended and string.sub(ended, 1, #fence + 1) == fence .. ':' then
  return
end
local refused = refusal(fence)
if refused then return refused end
if state == '' then
  redis.call('HDEL', LEDGER, 'state')
else
  redis.call('HSET', LEDGER, 'state', state)
end
if ARGV[8] then
  redis.call('RPUSH', TURNS, ARGV[8])
  redis.call('LTRIM', TURNS, -tonumber(ARGV[7]), -1)
end
finish(request, fence .. ':' .. outcome)
free()
keep()
""",
)

# ARGV ... fence
ABANDON = Script.of(
    _FRUGAL_PRELUDE,
    """
if held == ARGV[3] then
  let_go()
  keep()
end
""",
)

# ARGV ... request channel -> done | running | queued
CANCEL = Script.of(
    _PRELUDE,
    """
local request = ARGV[3]
local mine = holder == request
let_go_if_lapsed()
if mine then
  if holder then
    told = '1'
    redis.call('HSET', LEDGER, 'told', told)
  end
end
local found
if redis.call('HEXISTS', DONE, request) == 1 then
  found = 'done'
elseif holder and mine then
  found = 'running'
else
  finish(request)
  found = 'queued'
end
keep()
-- Told even if its lease ran out: its runner may still be at it, at somebody's cost.
if mine then redis.call('PUBLISH', ARGV[4], '') end
return found
""",
)

# KEYS ledger done, ARGV fence request -> 1 if the claim's turn was cancelled
TOLD = Script.of(
    """#!lua flags=no-writes
local claim = redis.call('HMGET', KEYS[1], 'held', 'told')
if claim[1] == ARGV[1] then
  return claim[2] and 1 or 0
end
local ended = redis.call('HGET', KEYS[2], ARGV[2])
return ended and string.sub(ended, 1, 2) == '0:' and 1 or 0
""",
)
