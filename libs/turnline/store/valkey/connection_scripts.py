"""What happens to a user's connections in one step, in the server's own language.

`sockets` holds `<until ms>;<since µs>;<endpoint>` by connection id, `held` a list of
`<until ms>;<frame>`.
"""

from turnline.store.valkey.commands import Script

_NOW = """#!lua
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
"""

# KEYS sockets; forgets what expired and gives field, value, field, value, ... of what did not.
_LIVE = """
local function live()
  local all, kept = redis.call('HGETALL', KEYS[1]), {}
  for at = 1, #all, 2 do
    if tonumber(string.match(all[at + 1], '^%d+')) <= now then
      redis.call('HDEL', KEYS[1], all[at])
    else
      kept[#kept + 1] = all[at]
      kept[#kept + 1] = all[at + 1]
    end
  end
  return kept
end
"""

# KEYS sockets, ARGV ttl_ms connection endpoint
ADD = Script.of(
    _NOW,
    _LIVE,
    """
live()
local since = string.format('%d%06d', clock[1], clock[2])
local known = redis.call('HGET', KEYS[1], ARGV[2])
if known then
  since = string.match(known, '^%d+;(%d+)')
end
local value = string.format('%.0f;%s;', now + tonumber(ARGV[1]), since) .. ARGV[3]
redis.call('HSET', KEYS[1], ARGV[2], value)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
""",
)

# KEYS sockets -> {connection, value, ...}
SOCKETS = Script.of(_NOW, _LIVE, "return live()\n")

# KEYS held, ARGV ttl_ms max_held frame
HOLD = Script.of(
    _NOW,
    """
redis.call('RPUSH', KEYS[1], string.format('%.0f;', now + tonumber(ARGV[1])) .. ARGV[3])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
""",
)

# KEYS held -> {digest of the newest, frame, ...} or {}
HELD = Script.of(
    _NOW.replace("#!lua", "#!lua flags=no-writes"),
    """
local all, found = redis.call('LRANGE', KEYS[1], 0, -1), {}
for _, held in ipairs(all) do
  local stop = string.find(held, ';', 1, true)
  if tonumber(string.sub(held, 1, stop - 1)) > now then
    found[#found + 1] = string.sub(held, stop + 1)
  end
end
if #found > 0 then table.insert(found, 1, redis.sha1hex(all[#all])) end
return found
""",
)

# KEYS held, ARGV digest
DROP = Script.of(
    "#!lua flags=allow-oom\n",
    """
for place, held in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if redis.sha1hex(held) == ARGV[1] then
    redis.call('LTRIM', KEYS[1], place, -1)
    return
  end
end
""",
)
