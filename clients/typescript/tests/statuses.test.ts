import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { TurnlineClient, type TurnlineError } from "@turnline/client";
import { FailureSchema, RetryHint } from "@turnline/client/turnline/v1/failure_pb";
import { Scripted, serving } from "./own_server.js";
import { env, refused, resultOf, Seen, SOON, turn } from "./rig.js";

/** One way in which a server ends a call, of tests/contract/proto/statuses.json. */
interface Ended {
  name: string;
  status: { number: number; message: string };
  trailer: string;
  error: object;
  tries: number;
}

const rows = JSON.parse(readFileSync(env("TURNLINE_STATUSES"), "utf8")) as Ended[];
const THREE_TRIES = { maxTries: 3, backoffMs: 10 };

test("there are statuses", () => assert.ok(rows.length >= 30));

function row(name: string): Ended {
  const found = rows.find((each) => each.name === name);
  assert.ok(found, name);
  return found;
}

/** What a server throws to end a call so. */
function refusalOf({ status, trailer }: Ended): ConnectError {
  const error = new ConnectError(status.message, status.number as Code);
  error.details = detailsIn(Buffer.from(trailer, "hex"));
  return error;
}

/** The `Any`s of a `google.rpc.Status`, whose code is not at hand here. */
function detailsIn(status: Uint8Array): ConnectError["details"] {
  const [reader, details] = [new BinaryReader(status), [] as ConnectError["details"]];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field !== 3) {
      reader.skip(wireType as WireType);
      continue;
    }
    const any = fromBinary(AnySchema, reader.bytes());
    details.push({ type: any.typeUrl.replace(/^.*\//, ""), value: any.value });
  }
  return details;
}

/** What a caller is told; seconds in `retry_after`. */
function told(error: TurnlineError): object {
  return {
    code: error.code,
    field: error.field,
    message: error.message,
    request_id: error.requestId,
    retry_after: error.retryAfterMs / 1000,
    retryable: error.retryable,
    status_code: error.statusCode,
  };
}

for (const each of rows) {
  test(`a call that ${each.name} ends tells it and is made as often as it may`, async () => {
    const server = new Scripted(() => refusalOf(each));
    const asking = await serving(server.service, THREE_TRIES);
    const failed = await refused(asking.submit(turn("echo", "hi", { requestId: "r1" }), SOON));

    assert.deepEqual(told(failed), each.error);
    assert.equal(server.asked, each.tries);
  });

  // Streams go on after it.
  if (each.name === "reply_not_ready") continue;
  test(`a stream that ${each.name} ends does the same`, async () => {
    const server = new Scripted(() => refusalOf(each));
    const asking = await serving(server.service, THREE_TRIES);
    const events = asking.stream(turn("echo", "hi", { requestId: "r1" }), SOON);
    const failed = await refused(new Seen().read(events));

    assert.deepEqual(told(failed), each.error);
    assert.equal(server.asked, each.tries);
  });
}

test("a reader who is sent away for the silence comes back as often as it takes", async () => {
  const away = row("reply_not_ready");
  const server = new Scripted((asked) => (asked < 8 ? refusalOf(away) : undefined));
  const asking = await serving(server.service, THREE_TRIES);
  const all = await new Seen().read(asking.stream(turn("echo", "hi"), SOON));

  assert.deepEqual([all.result, server.asked], ["x", 8]);
});

test("a reply is asked for again, with a pause, while the server waits less", async () => {
  const server = new Scripted(undefined, 3);
  const asking = await serving(server.service, THREE_TRIES);
  const began = performance.now();
  const end = await asking.reply("r1", { ...SOON, waitMs: 60_000 });

  assert.deepEqual([resultOf(end), server.asked], ["x", 4]);
  // A timer may be early by a millisecond.
  assert.ok(performance.now() - began >= 3 * 199);
});

test("a reply is not waited for longer than was asked, nor beyond the deadline", async () => {
  const server = new Scripted(undefined, Infinity);
  const asking = await serving(server.service, THREE_TRIES);
  assert.equal(await asking.reply("r1", { ...SOON, waitMs: 500 }), undefined);
  // With a pause of 0.2 s between two.
  assert.ok(server.asked <= 3);

  assert.equal(await asking.reply("r1", { timeoutMs: 1000, waitMs: 60_000 }), undefined);
});

test("callers come back some time after the pause they were asked for", async () => {
  const away = row("draining_for_long");
  const server = new Scripted((asked) => (asked === 1 ? refusalOf(away) : undefined));
  const asking = await serving(server.service, { backoffMs: 400 });
  const began = performance.now();
  await asking.submit(turn("echo", "hi"), SOON);

  // 0.4 s as asked, and half of a half of that at least; a timer may be early by a millisecond.
  assert.ok(performance.now() - began >= 499);
});

/** A refusal of a server that asks for a pause. */
function askingFor(seconds: number): ConnectError {
  const retryAfter = { seconds: BigInt(seconds) };
  const value = { code: "busy", retry: RetryHint.AFTER, retryAfter };
  return new ConnectError("busy", Code.Unavailable, undefined, [{ desc: FailureSchema, value }]);
}

test("a pause behind the deadline is not waited for, the call's or the client's", async () => {
  const server = new Scripted(() => askingFor(600));
  for (const [options, call] of [
    [{}, SOON],
    [{}, {}],
    [{ timeoutMs: 60_000 }, {}],
  ]) {
    const asking = await serving(server.service, options);
    assert.equal((await refused(asking.submit(turn("echo", "hi"), call))).code, "busy");
    const events = asking.stream(turn("echo", "hi"), call);
    assert.equal((await refused(new Seen().read(events))).code, "busy");
  }
  assert.equal(server.asked, 6);
});

test("a closed client refuses, and asks nobody", async () => {
  const server = new Scripted();
  const closed = await serving(server.service);
  closed.close();
  const asked = turn("echo", "hi");
  const calls: ((client: TurnlineClient) => Promise<unknown>)[] = [
    (client) => client.chat(asked),
    (client) => client.submit(asked),
    (client) => client.reply("r1"),
    (client) => client.cancel("r1"),
    (client) => new Seen().read(client.stream(asked)),
    (client) => new Seen().read(client.resume("r1")),
  ];

  for (const call of calls) {
    const failed = await refused(call(closed));
    assert.deepEqual([failed.code, failed.retryable], ["cancelled", false]);
  }
  assert.equal(server.asked, 0);
});

test("a client that is closed between two tries makes no other", async () => {
  const { promise: asked, resolve } = withResolvers();
  const server = new Scripted(() => (resolve(), askingFor(30)));
  const asking = await serving(server.service);
  const began = performance.now();
  const call = refused(asking.submit(turn("echo", "hi"), SOON));
  await asked;
  // The refusal is on its way; when it is there, the pause begins.  Earlier shows nothing.
  setTimeout(() => asking.close(), 500);
  const failed = await call;

  assert.deepEqual([failed.code, server.asked], ["cancelled", 1]);
  assert.ok(performance.now() - began < 15_000);
});

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

test("a token is not sent elsewhere without TLS, unless that is allowed", () => {
  for (const target of [
    "example.org:443",
    "10.0.0.1:8001",
    "[2001:db8::1]:8001",
    "127.0.0.1.example.org:1",
    "localhost.example.org:1",
    "127.0.0.1@example.org:1",
  ]) {
    for (const token of ["t", () => "t"]) {
      assert.throws(() => new TurnlineClient(target, { token }), /allowPlaintextToken/);
    }
    new TurnlineClient(target, { token: "t", allowPlaintextToken: true }).close();
    new TurnlineClient(target, { token: "t", tls: true }).close();
    new TurnlineClient(target).close();
  }
  for (const target of ["localhost:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1"]) {
    new TurnlineClient(target, { token: "t" }).close();
  }
});
