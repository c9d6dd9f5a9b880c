"""What happens to an answer in one step, in the server's own language.

`head` fields: `session`, `print` (fingerprint; none until the turn is opened), `attempt` and `last`
(newest attempt seen in chunks, and its highest index), `bytes` (size of the kept chunks), `end`
and `kind` (`reply` or `failure`; none while pending).  `chunks` is a stream whose entry ids are
`<attempt>-<index + 1>`; an id of 0 is not allowed there.
"""

from turnline.store.valkey.commands import Script

_WRITES = "#!lua\n"
_READS = "#!lua flags=no-writes\n"
_FREES = "#!lua flags=allow-oom\n"

# KEYS head chunks, ARGV ttl_ms
_KEEP = """
local function keep()
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
end
"""

# KEYS head chunks, ARGV ttl_ms session fingerprint -> new | known | different
OPEN = Script.of(
    _WRITES,
    _KEEP,
    """
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'session', ARGV[2], 'print', ARGV[3])
  keep()
  return 'new'
end
-- A turn known only by its chunks or its end takes the first fingerprint that comes.
redis.call('HSETNX', KEYS[1], 'print', ARGV[3])
if redis.call('HGET', KEYS[1], 'print') == ARGV[3] then
  return 'known'
end
return 'different'
""",
)

# KEYS head chunks
DISCARD = Script.of(
    _FREES,
    """
if redis.call('HEXISTS', KEYS[1], 'end') == 0 then
  redis.call('DEL', KEYS[1], KEYS[2])
end
""",
)

# KEYS head chunks, ARGV ttl_ms session end kind attempt channel_ended channel_changed
PUT = Script.of(
    _WRITES,
    _KEEP,
    """
local kind = redis.call('HGET', KEYS[1], 'kind')
if kind and not (kind == 'failure' and ARGV[4] == 'reply') then
  return
end
redis.call('HSETNX', KEYS[1], 'session', ARGV[2])
redis.call('HSET', KEYS[1], 'end', ARGV[3], 'kind', ARGV[4])
-- A later attempt voids what earlier ones streamed.
local attempt = tonumber(redis.call('HGET', KEYS[1], 'attempt') or '0')
if attempt < tonumber(ARGV[5]) then
  redis.call('HDEL', KEYS[1], 'attempt', 'last', 'bytes')
  redis.call('DEL', KEYS[2])
end
keep()
redis.call('PUBLISH', ARGV[6], '')
redis.call('PUBLISH', ARGV[7], '')
""",
)

# KEYS head chunks, ARGV ttl_ms session max_chunks max_bytes channel_changed, then per chunk
# attempt index body
APPEND = Script.of(
    _WRITES,
    _KEEP,
    """
local head = redis.call('HMGET', KEYS[1], 'kind', 'attempt', 'last', 'bytes')
if head[1] then
  return
end
local attempt = tonumber(head[2] or '0')
local last = tonumber(head[3] or '-1')
local bytes = tonumber(head[4] or '0')
for at = 6, #ARGV, 3 do
  local chunk_attempt, index, body = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2]
  if chunk_attempt > attempt then
    redis.call('DEL', KEYS[2])
    attempt, last, bytes = chunk_attempt, -1, 0
  end
  if chunk_attempt == attempt and index > last then
    local id = string.format('%.0f-%.0f', attempt, index + 1)
    redis.call('XADD', KEYS[2], id, 'c', body)
    last, bytes = index, bytes + #body
  end
end
-- Over its bounds a stream loses its oldest chunks, never its newest.
local excess = redis.call('XLEN', KEYS[2]) - tonumber(ARGV[3])
while excess > 0 or bytes > tonumber(ARGV[4]) do
  local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 2)
  if #oldest < 2 then break end
  redis.call('XDEL', KEYS[2], oldest[1][1])
  excess, bytes = excess - 1, bytes - #oldest[1][2][2]
end
redis.call('HSETNX', KEYS[1], 'session', ARGV[2])
redis.call('HSET', KEYS[1], 'attempt', string.format('%.0f', attempt),
  'last', string.format('%.0f', last), 'bytes', string.format('%.0f', bytes))
keep()
redis.call('PUBLISH', ARGV[5], '')
""",
)

# KEYS head chunks, ARGV attempt index count -> {known, end or '' or false, entries}
# The end comes with the last entries; while there are more it is '' and the reader comes again.
READ = Script.of(
    _READS,
    """
local head = redis.call('HMGET', KEYS[1], 'session', 'attempt', 'end')
if not head[1] then
  return {0, false, {}}
end
local entries = {}
local attempt, wanted = tonumber(head[2] or '0'), tonumber(ARGV[1])
if attempt >= wanted and attempt > 0 then
  -- Who stands in a voided attempt reads the new one from its first chunk.
  local after = attempt > wanted and 0 or tonumber(ARGV[2]) + 1
  local from = string.format('(%.0f-%.0f', attempt, after)
  entries = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', ARGV[3])
end
local ending = head[3]
if ending and #entries == tonumber(ARGV[3]) then
  ending = ''
end
return {1, ending, entries}
""",
)
