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
    const counter = turn("turns", "how many", { sessionId: held.sessionId });
    assert.equal(resultOf(await asking.chat(counter, SOON)), "1");
  });
}

test("a stream waits for a server that is away for a while", async () => {
  const [proxy, gate] = [await Proxy.to(env("TURNLINE_OPEN")), new Gate()];
  const patient = client(proxy.address, { maxTries: 1000, backoffMs: 20 });
  const all = await new Seen().read(patient.stream(turn("hold", gate.path), SOON), (chunk) => {
    if (chunk.text !== "holding ") return;
    proxy.refuse();
    gate.open();
    void proxy.refused().then(() => proxy.heal());
  });

  assert.equal(all.text, "holding done");
});

test("a stream goes on behind the last piece after each cut", async () => {
  const [proxy, gate] = [await Proxy.to(env("TURNLINE_OPEN")), new Gate()];
  const events = client(proxy.address).stream(turn("steps", gate.path), SOON);
  const all = await new Seen().read(events, (chunk) => {
    // What comes next is not made before the cut, so it comes over another connection.
    proxy.cut();
    gate.openStep(Number(chunk.text) + 1);
  });

  assert.deepEqual(all.kinds, ["admitted", "1 ", "2 ", "3 ", "4 ", "5 ", "end"]);
  assert.ok(proxy.connections >= 5);
});

test("tries of a stream are bounded", async () => {
  const [proxy, gate, all] = [await Proxy.to(env("TURNLINE_OPEN")), new Gate(), new Seen()];
  const asking = client(proxy.address, { maxTries: 3, backoffMs: 1 });
  const events = asking.stream(turn("hold", gate.path), SOON);
  const failed = await refused(all.read(events, () => proxy.refuse()));

  assert.equal(failed.code, "unavailable");
  assert.equal(all.text, "holding ");
});
