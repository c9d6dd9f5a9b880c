// What the tests share; the servers are those of clients/testing/rig.py.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout } from "node:timers/promises";
import {
  type CallOptions,
  type Options,
  type StreamEvent,
  type Turn,
  TurnlineClient,
  TurnlineError,
} from "@turnline/client";

/** Bounds a test's wait for something that should come soon. */
export const SOON: CallOptions = { timeoutMs: 60_000 };

export function env(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

export function client(target: string, options: Options = {}): TurnlineClient {
  const made = new TurnlineClient(target, options);
  after(() => made.close());
  return made;
}

/** A client of the server that wants no token. */
export function open(): TurnlineClient {
  return client(env("TURNLINE_OPEN"));
}

/** A client of the server with TLS and tokens. */
export function strict(options: Options): TurnlineClient {
  const tls = { ca: readFileSync(env("TURNLINE_STRICT_CA")) };
  return client(env("TURNLINE_STRICT"), { tls, ...options });
}

let sessions = 0;

/** A turn for an agent, in a session of its own unless that is said. */
export function turn(agent: string, prompt: string, more: Partial<Turn> = {}): Turn {
  return { sessionId: `s${process.pid}-${++sessions}`, request: { agent, prompt }, ...more };
}

/** A file that the agent `hold` waits for. */
export class Gate {
  readonly path = join(mkdtempSync(join(env("TURNLINE_FOLDER"), "gate-")), "open");

  constructor() {
    after(() => this.open());
  }

  open(): void {
    writeFileSync(this.path, "");
  }

  /** Lets the agent `steps` go on to a step. */
  openStep(step: number): void {
    writeFileSync(`${this.path}.${step}`, "");
  }
}

/** The error of a call, which must be one of the client's. */
export async function refused(call: Promise<unknown>): Promise<TurnlineError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof TurnlineError, String(error));
    return error;
  }
  assert.fail("it was answered");
}

/** Waits until the server knows a turn. */
export async function admitted(asking: TurnlineClient, requestId: string): Promise<void> {
  for (;;) {
    try {
      await asking.reply(requestId, SOON);
      return;
    } catch (error) {
      assert.equal((error as TurnlineError).code, "not_found");
    }
    await setTimeout(20);
  }
}

/** Asks for a turn's stream and leaves as soon as the turn is on its way. */
export async function admittedByStream(asking: TurnlineClient, asked: Turn): Promise<string> {
  for await (const event of asking.stream(asked, SOON)) {
    if (event.kind === "admitted") return event.requestId;
  }
  assert.fail("the turn was not admitted");
}

/** What a stream brought; in `kinds` a text stands for itself, other chunks are left out. */
export class Seen {
  readonly kinds: string[] = [];
  text = "";
  requestId = "";
  result: string | undefined;

  /** Reads a stream to its end; `on` is called for each text. */
  async read(
    events: AsyncIterable<StreamEvent>,
    on: (chunk: StreamEvent & { kind: "chunk" }) => unknown = () => {},
  ): Promise<this> {
    for await (const event of events) {
      if (event.kind !== "chunk") this.kinds.push(event.kind);
      if (event.kind === "admitted") this.requestId = event.requestId;
      if (event.kind === "restart") this.text = "";
      if (event.kind === "end") this.result = resultOf(event.end);
      if (event.kind === "chunk" && event.text) {
        this.kinds.push(event.text);
        this.text += event.text;
        await on(event);
      }
    }
    return this;
  }
}

export function resultOf(
  end: Awaited<ReturnType<TurnlineClient["reply"]>>,
): string | undefined {
  return end?.outcome.case === "reply" ? end.outcome.value.result : undefined;
}
