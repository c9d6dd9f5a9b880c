// A host of one agent, written in TypeScript: it streams the words of a prompt in capitals.
//
// The protocol is proto/turnline/v1/agent_service.proto, which is read when the host starts.

import { parseArgs } from "node:util";
import * as grpc from "@grpc/grpc-js";
import * as loader from "@grpc/proto-loader";

const AGENT = "shout";
// Runners give up on a host that says nothing for 15 seconds.
const HEARTBEAT_MS = 5_000;
const DRAIN_MS = 5_000;

interface Struct {
  fields: Record<string, { numberValue?: number }>;
}

interface Turn {
  request: { prompt: string };
  attempt: number;
  state?: Struct;
}

interface RunRequest {
  agent: string;
  turn: Turn;
}

type RunResponse =
  | { heartbeat: object }
  | { event: { type: string; content: string } }
  | { reply: { text: string; extra: Struct; state: Struct } }
  | { failure: { message: string; statusCode: number } };

type Call = grpc.ServerWritableStream<RunRequest, RunResponse>;

/** Answers one turn.  The runner that asked may cancel it at any time. */
async function run(call: Call): Promise<void> {
  if (call.request.agent !== AGENT) {
    call.emit("error", { code: grpc.status.NOT_FOUND, details: "no agent of this name" });
    return;
  }
  const left = new AbortController();
  call.on("cancelled", () => left.abort());
  const silence = setInterval(() => call.write({ heartbeat: {} }), HEARTBEAT_MS);
  try {
    for await (const response of shout(call.request.turn, left.signal)) {
      silence.refresh();
      if (left.signal.aborted) return;
      if (!call.write(response)) await drained(call, left.signal);
    }
  } finally {
    clearInterval(silence);
    call.end();
  }
}

/** What the agent says: one event a word, then its reply or why there is none. */
async function* shout(turn: Turn, left: AbortSignal): AsyncGenerator<RunResponse> {
  const prompt = turn.request.prompt;
  if (prompt.includes("forbidden")) {
    yield { failure: { message: "That is not said here", statusCode: 403 } };
    return;
  }
  let text = "";
  for (const word of prompt.split(/\s+/).filter(Boolean)) {
    const content = (text ? " " : "") + word.toUpperCase();
    text += content;
    yield { event: { type: "EVENT_TYPE_TEXT_DELTA", content } };
    if (word === "hang" && turn.attempt === 1) {
      await aborted(left); // something that hangs, and works when it is tried again
      console.log(`left: ${prompt}`);
      return;
    }
  }
  // What is in the state is saved with the reply in one step, or not at all.
  const turns = (turn.state?.fields.turns?.numberValue ?? 0) + 1;
  const counted: Struct = { fields: { turns: { numberValue: turns } } };
  yield { reply: { text, extra: counted, state: counted } };
}

function drained(call: Call, left: AbortSignal): Promise<void> {
  const drain = new Promise<void>((resolve) => call.once("drain", () => resolve()));
  return Promise.race([drain, aborted(left)]);
}

function aborted(left: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (left.aborted) resolve();
    else left.addEventListener("abort", () => resolve(), { once: true });
  });
}

function listAgents(
  _call: grpc.ServerUnaryCall<object, object>,
  answer: grpc.sendUnaryData<object>,
): void {
  answer(null, { agents: [{ name: AGENT, description: "Says it in capitals." }] });
}

const { values } = parseArgs({
  options: {
    listen: { type: "string", default: "127.0.0.1:9000" },
    proto: { type: "string", default: "../../../proto" },
  },
});
const definition = loader.loadSync("turnline/v1/agent_service.proto", {
  includeDirs: [values.proto],
  enums: String,
  defaults: true,
  oneofs: true,
});
const described = grpc.loadPackageDefinition(definition) as unknown as {
  turnline: { v1: { AgentService: grpc.ServiceClientConstructor } };
};
const server = new grpc.Server();
server.addService(described.turnline.v1.AgentService.service, { run, listAgents });
server.bindAsync(values.listen, grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`listening on ${values.listen.split(":")[0]}:${port}`);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    setTimeout(() => server.forceShutdown(), DRAIN_MS).unref();
    server.tryShutdown(() => {});
  });
}
