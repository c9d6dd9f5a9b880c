import assert from "node:assert/strict";
import { test } from "node:test";
import { Proxy } from "./proxy.js";
import {
  admitted,
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

for (const how of ["reset", "end"] as const) {
  test(`a stream that is cut (${how}) goes on behind the last event seen`, async () => {
    const [proxy, gate] = [await Proxy.to(env("TURNLINE_OPEN")), new Gate()];
    const events = client(proxy.address).stream(turn("hold", gate.path), SOON);
    const all = await new Seen().read(events, (chunk) => {
      if (chunk.text !== "holding ") return;
      proxy.cut(how);
      gate.open();
    });

    assert.deepEqual(all.kinds, ["admitted", "holding ", "done", "end"]);
    assert.equal(proxy.connections, 2);
  });

  test(`a chat that is cut (${how}) comes back for the same turn`, async () => {
    const [proxy, gate, asking] = [await Proxy.to(env("TURNLINE_OPEN")), new Gate(), open()];
    const held = turn("hold", gate.path, { requestId: `cut by ${how}` });
    const answer = client(proxy.address).chat(held, SOON);
    await admitted(asking, `cut by ${how}`);
    proxy.cut(how);
    gate.open();

    assert.equal(resultOf(await answer), "holding done");
    const counter = turn("counter", "how many", { sessionId: held.sessionId });
    assert.equal(resultOf(await asking.chat(counter, SOON)), "1");
  });
}

test("a stream waits for a server that is away for a while", async () => {
  const [proxy, gate] = [await Proxy.to(env("TURNLINE_OPEN")), new Gate()];
  const events = client(proxy.address).stream(turn("hold", gate.path), SOON);
  const all = await new Seen().read(events, (chunk) => {
    if (chunk.text !== "holding ") return;
    proxy.refuse();
    gate.open();
    setTimeout(() => proxy.heal(), 300);
  });

  assert.equal(all.text, "holding done");
});

test("a reader who is sent away for the silence comes back", async () => {
  const gate = new Gate();
  const asking = strict({ token: env("TURNLINE_TOKEN"), maxTries: 2 });
  const events = asking.stream(turn("hold", gate.path), SOON);
  const all = await new Seen().read(events, (chunk) => {
    if (chunk.text === "holding ") setTimeout(() => gate.open(), 3500);
  });

  assert.equal(all.text, "holding done");
});

test("tries of a stream are bounded", async () => {
  const [proxy, gate, all] = [await Proxy.to(env("TURNLINE_OPEN")), new Gate(), new Seen()];
  const asking = client(proxy.address, { maxTries: 3, backoffMs: 1 });
  const events = asking.stream(turn("hold", gate.path), SOON);
  const failed = await refused(all.read(events, () => proxy.refuse()));

  assert.equal(failed.code, "unavailable");
  assert.equal(all.text, "holding ");
});
