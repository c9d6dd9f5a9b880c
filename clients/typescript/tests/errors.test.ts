import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { STREAM_GAP } from "@turnline/client";
import { Proxy } from "./proxy.js";
import {
  admitted,
  admittedByStream,
  client,
  env,
  Gate,
  open,
  refused,
  resultOf,
  Seen,
  SOON,
  strict,
  turn,
} from "./rig.js";

const TOKEN = { token: env("TURNLINE_TOKEN") };
const ONE_TRY = { ...TOKEN, maxTries: 1 };

test("the right token over TLS is answered, also one that is asked for", async () => {
  for (const token of [TOKEN.token, async () => TOKEN.token]) {
    const end = await strict({ token }).chat(turn("echo", "hi"), SOON);
    assert.equal(resultOf(end), "hi ");
  }
});

test("without a good token a caller is unauthenticated, and the token is shown nowhere", async () => {
  for (const token of [undefined, "a-secret-of-mine"]) {
    const asking = strict(token ? { token } : {});
    const failed = await refused(asking.chat(turn("echo", "hi"), SOON));

    assert.deepEqual([failed.code, failed.retryable], ["unauthenticated", false]);
    const shown = inspect([asking, failed], { depth: 10, showHidden: true });
    assert.ok(!shown.includes("a-secret-of-mine"));
  }
});

test("a token that cannot be had is the error's cause", async () => {
  const cause = new Error("the provider is away");
  const asking = client(env("TURNLINE_OPEN"), { token: () => Promise.reject(cause) });
  const failed = await refused(asking.chat(turn("echo", "hi"), SOON));

  assert.deepEqual([failed.code, failed.cause], ["unauthenticated", cause]);
});

test("another user's turn is not found", async () => {
  const { requestId } = await strict(TOKEN).submit(turn("echo", "hi"), SOON);

  const other = strict({ token: env("TURNLINE_OTHER_TOKEN") });
  assert.equal((await refused(other.reply(requestId, SOON))).code, "not_found");
});

test("an invalid request names its field", async () => {
  const failed = await refused(open().chat(turn("echo", "hi", { sessionId: "" }), SOON));

  assert.deepEqual([failed.code, failed.field], ["invalid_request", "session_id"]);
});

test("an unknown agent is refused", async () => {
  assert.equal((await refused(open().submit(turn("nobody", "hi"), SOON))).code, "unknown_agent");
});

test("what nobody admitted is not found", async () => {
  const asking = open();
  for (const call of [
    () => asking.reply("nobody", SOON),
    () => asking.cancel("nobody", SOON),
    () => new Seen().read(asking.resume("nobody", undefined, SOON)),
  ]) {
    const failed = await refused(call());
    assert.deepEqual([failed.code, failed.requestId], ["not_found", "nobody"]);
  }
});

test("an id with another request is refused", async () => {
  const asking = open();
  const first = turn("echo", "one", { requestId: "used" });
  await asking.chat(first, SOON);

  const second = { ...first, request: { agent: "echo", prompt: "two" } };
  assert.equal((await refused(asking.chat(second, SOON))).code, "request_id_reused");
});

test("a too large request is refused and not tried again", async () => {
  const failed = await refused(strict(TOKEN).chat(turn("echo", "x".repeat(200_000)), SOON));

  assert.deepEqual([failed.code, failed.retryable], ["resource_exhausted", false]);
});

test("a full session says when to come back, and is tried again", async () => {
  const [gate, impatient] = [new Gate(), strict(ONE_TRY)];
  const held = turn("hold", gate.path);
  await impatient.submit(held, SOON);
  await impatient.submit(held, SOON);

  const failed = await refused(impatient.submit(held, SOON));
  assert.deepEqual([failed.code, failed.retryable], ["session_queue_full", true]);
  assert.ok(failed.retryAfterMs > 0);

  let tries = 0;
  const token = () => {
    // Asked for a token once more, it was refused before.
    if (++tries === 2) gate.open();
    return TOKEN.token;
  };
  const began = performance.now();
  await strict({ token, maxTries: 1000 }).submit(held, SOON);
  // A timer may be early by a millisecond.
  assert.ok(performance.now() - began >= failed.retryAfterMs - 2);
});

test("an agent that fails is an error in every mode", async () => {
  const asking = open();
  const broken = turn("broken", "go", { requestId: "broken" });
  const chat = await refused(asking.chat(broken, SOON));
  const reply = await refused(asking.reply("broken", SOON));
  const stream = await refused(new Seen().read(asking.stream(broken, SOON)));

  for (const failed of [chat, reply, stream]) {
    assert.deepEqual([failed.code, failed.requestId], ["agent_failed", "broken"]);
    assert.equal(failed.retryable, false);
    assert.ok(!inspect(failed, { depth: 10 }).includes("secret-of-the-agent"));
  }
});

test("an agent's refusal has its words", async () => {
  const failed = await refused(open().chat(turn("refusing", "you"), SOON));

  assert.equal(failed.message, "no credit for you");
});

test("a caller's deadline ends its wait and not its turn", async () => {
  const [asking, gate] = [open(), new Gate()];
  const held = turn("hold", gate.path, { requestId: "outlives its caller" });
  await asking.submit(held, SOON);
  const failed = await refused(asking.chat(held, { timeoutMs: 500 }));
  assert.equal(failed.code, "deadline_exceeded");

  gate.open();
  const end = await asking.reply(failed.requestId, { ...SOON, waitMs: 60_000 });
  assert.equal(resultOf(end), "holding done");
});

test("a reader's deadline ends its stream", async () => {
  const gate = new Gate();
  const events = open().stream(turn("hold", gate.path), { timeoutMs: 500 });

  assert.equal((await refused(new Seen().read(events))).code, "deadline_exceeded");
});

test("a caller who gives up is told so", async () => {
  const [gate, leaving] = [new Gate(), new AbortController()];
  const events = open().stream(turn("hold", gate.path), { signal: leaving.signal });

  const failed = await refused(new Seen().read(events, () => leaving.abort()));
  assert.equal(failed.code, "cancelled");
});

test("a client that is closed ends what runs on it", async () => {
  const [gate, proxy] = [new Gate(), await Proxy.to(env("TURNLINE_OPEN"))];
  const asking = client(proxy.address);
  const events = asking.stream(turn("hold", gate.path), SOON);

  const failed = await refused(new Seen().read(events, () => asking.close()));
  assert.deepEqual([failed.code, proxy.connections], ["cancelled", 1]);
});

test("a turn past its deadline is cut off", async () => {
  const gate = new Gate();
  const failed = await refused(strict(TOKEN).chat(turn("hold", gate.path), SOON));

  assert.equal(failed.code, "turn_deadline_exceeded");
});

test("chunks that are no longer kept are an error, and the reply is whole", async () => {
  const [asking, words] = [strict(TOKEN), "word ".repeat(500)];
  const requestId = await admittedByStream(asking, turn("echo", words));
  assert.equal(resultOf(await asking.reply(requestId, { ...SOON, waitMs: 60_000 })), words);

  const failed = await refused(new Seen().read(asking.resume(requestId, undefined, SOON)));
  assert.deepEqual([failed.code, failed.requestId], [STREAM_GAP, requestId]);
});

test("a server that is not there is unavailable", async () => {
  const away = await Proxy.to("127.0.0.1:1");
  const asking = client(away.address, { maxTries: 2, backoffMs: 1 });
  const failed = await refused(asking.chat(turn("echo", "hi"), SOON));

  assert.deepEqual([failed.code, failed.retryable], ["unavailable", true]);
  assert.equal(away.connections, 2);
});

test("a server that drains sends its callers elsewhere", async () => {
  const [asking, gate] = [client(env("TURNLINE_DRAINING"), { maxTries: 1 }), new Gate()];
  const held = turn("hold", gate.path, { requestId: "held" });
  const waiting = refused(asking.chat(held, SOON));
  await admitted(asking, "held");
  process.kill(Number(env("TURNLINE_DRAINING_PID")), "SIGTERM");

  const failed = await waiting;
  assert.deepEqual([failed.code, failed.requestId], ["draining", "held"]);
  assert.equal(failed.retryAfterMs, 1000);
});
