"""What happens to a queue's books in one step, in the server's own language.

`id` holds `p` while an envelope is being sent and `c` once it was; `room` is a sorted set of the
ids not finished, by when they are given up (ms), `share` the same of one group; `mark` holds
`<sent at ms>;<record>` of an id's first record; `tries` counts a record's deliveries.
"""

from turnline.store.valkey.commands import Script

# What `id` holds once its envelope was sent.
SENT = "c"

_PLAIN = "#!lua\n"
_NOW = """#!lua
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
"""

# KEYS id room share, ARGV dedup_id patience_ms keep_ms max_messages max_per_group
ADMIT = Script.of(
    _NOW,
    """
local known = redis.call('GET', KEYS[1])
if known == 'c' then return 'copy' end
if known == 'p' then return 'pending' end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 'queue_full' end
local most = tonumber(ARGV[5])
if most > 0 and redis.call('ZCARD', KEYS[3]) >= most then return 'group_full' end
redis.call('SET', KEYS[1], 'p', 'PX', ARGV[2])
for _, key in ipairs({KEYS[2], KEYS[3]}) do
  redis.call('ZADD', key, now + tonumber(ARGV[3]), ARGV[1])
  redis.call('PEXPIRE', key, ARGV[3])
end
return 'taken'
""",
)

# KEYS id room share, ARGV dedup_id
UNSENT = Script.of(
    _PLAIN,
    """
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
""",
)

# KEYS tries mark, ARGV record sent_at_ms window_ms keep_ms has_id
BEGIN = Script.of(
    _PLAIN,
    """
if ARGV[5] == '1' then
  local first = redis.call('GET', KEYS[2])
  if first then
    local stop = string.find(first, ';', 1, true)
    local since = tonumber(ARGV[2]) - tonumber(string.sub(first, 1, stop - 1))
    if string.sub(first, stop + 1) ~= ARGV[1] and since < tonumber(ARGV[3]) then
      return 0
    end
  end
  if tonumber(ARGV[3]) > 0 then
    redis.call('SET', KEYS[2], ARGV[2] .. ';' .. ARGV[1], 'PX', ARGV[3])
  end
end
local tries = redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return tries
""",
)

# KEYS tries
UNSPEND = Script.of(
    _PLAIN,
    """
if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then
  redis.call('DECR', KEYS[1])
end
""",
)

# KEYS tries mark room share, ARGV dedup_id window_ms
FINISH = Script.of(
    "#!lua flags=allow-oom\n",
    """
redis.call('DEL', KEYS[1])
if tonumber(ARGV[2]) > 0 then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
""",
)
