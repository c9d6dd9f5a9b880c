import assert from "node:assert/strict";
import { test } from "node:test";
import { type Position, TurnState } from "@turnline/client";
import { admittedByStream, Gate, open, refused, resultOf, Seen, SOON, turn } from "./rig.js";

test("chat waits for the answer, and a session has its history", async () => {
  const client = open();
  const first = turn("turns", "how many");
  const said = [await client.chat(first, SOON), await client.chat(first, SOON)].map(resultOf);

  assert.deepEqual(said, ["0", "1"]);
});

test("a turn that is named is run once", async () => {
  const client = open();
  const named = turn("turns", "how many", { requestId: "named" });
  const ends = [await client.chat(named, SOON), await client.chat(named, SOON)];

  assert.deepEqual(ends.map(resultOf), ["0", "0"]);
  assert.equal(ends[1]?.requestId, "named");
});

test("a submitted turn is pending until it has an end", async () => {
  const [client, gate] = [open(), new Gate()];
  const held = turn("hold", gate.path);
  const { requestId, ...admitted } = await client.submit(held, SOON);
  assert.deepEqual(admitted, { kind: "admitted", sessionId: held.sessionId, known: false });
  assert.equal(await client.reply(requestId, SOON), undefined);

  gate.open();
  const end = await client.reply(requestId, { ...SOON, waitMs: 60_000 });
  assert.equal(resultOf(end), "holding done");
});

test("a stream brings its events in order", async () => {
  const all = await new Seen().read(open().stream(turn("echo", "one two"), SOON));

  assert.deepEqual(all.kinds, ["admitted", "one ", "two ", "end"]);
  assert.equal(all.result, "one two ");
});

test("a restart voids what was streamed", async () => {
  const all = await new Seen().read(open().stream(turn("flaky", "go"), SOON));

  assert.deepEqual(all.kinds, ["admitted", "lost ", "restart", "kept", "end"]);
  assert.equal(all.text, "kept");
});

test("a stream is resumed behind a place", async () => {
  const client = open();
  const places: Position[] = [];
  const whole = await new Seen().read(client.stream(turn("echo", "one two three"), SOON), (chunk) =>
    places.push({ attempt: chunk.attempt, index: chunk.index }),
  );

  const rest = await new Seen().read(client.resume(whole.requestId, places[0], SOON));
  assert.equal(rest.text, "two three ");
  const again = await new Seen().read(client.resume(whole.requestId, undefined, SOON));
  assert.equal(again.text, whole.text);
});

test("a reader who leaves does not end the turn", async () => {
  const [client, gate] = [open(), new Gate()];
  const requestId = await admittedByStream(client, turn("hold", gate.path));

  gate.open();
  const end = await client.reply(requestId, { ...SOON, waitMs: 60_000 });
  assert.equal(resultOf(end), "holding done");
});

test("a running turn is cancelled", async () => {
  const [client, gate] = [open(), new Gate()];
  const held = turn("hold", gate.path, { requestId: "to be cancelled" });
  const states: TurnState[] = [];
  const reading = new Seen().read(client.stream(held, SOON), async () =>
    states.push(await client.cancel("to be cancelled", SOON)),
  );

  assert.equal((await refused(reading)).code, "turn_cancelled");
  states.push(await client.cancel("to be cancelled", SOON));
  assert.deepEqual(states, [TurnState.RUNNING, TurnState.DONE]);
});
