import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { STREAM_GAP, ofFailure, ofThrown, TurnlineError } from "./errors.js";
import type { TurnEnd } from "./gen/turnline/v1/chat_pb.js";
import type {
  StreamChatRequestSchema,
  StreamChatResponse,
} from "./gen/turnline/v1/chat_service_pb.js";
import { type ChatEvent, EventType } from "./gen/turnline/v1/chunk_pb.js";
import { again, type Patience, type Retry } from "./retry.js";

// Timers take no more: some 24 days.
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A place in a stream: everything up to and including it has been seen. */
export interface Position {
  attempt: number;
  index: number;
}

/** A turn is on its way; `known` is whether its id was used before with the same request. */
export interface Admitted {
  kind: "admitted";
  requestId: string;
  sessionId: string;
  known: boolean;
}

/** One thing a stream brings. */
export type StreamEvent =
  /** First, once. */
  | Admitted
  /** A piece of the answer; `text` is what it adds to the text of it, empty for other events. */
  | ({ kind: "chunk"; event: ChatEvent | undefined; text: string } & Position)
  /** What was streamed before is void: a new attempt begins. */
  | { kind: "restart"; attempt: number }
  /** The answer; last, once. */
  | { kind: "end"; end: TurnEnd };

type Request = Exclude<MessageInitShape<typeof StreamChatRequestSchema>, { $typeName: string }> & {
  requestId: string;
};
type Connect = (
  request: Request,
  signal: AbortSignal,
) => Promise<AsyncIterable<StreamChatResponse>>;

/** Reads a stream to its end, over as many connections as it takes. */
export async function* read(
  request: Request,
  retry: Retry,
  patience: Patience,
  connect: Connect,
): AsyncGenerator<StreamEvent, void> {
  const reading = new Reading(request);
  for (let tries = 1; ; tries++) {
    reading.moved = false;
    // Ends the call when the reader leaves, or its time is over.
    const leaving = new AbortController();
    const timer = expiring(leaving, patience);
    const signal = AbortSignal.any([patience.signal, leaving.signal]);
    try {
      for await (const item of await connect(reading.request, signal)) {
        const event = reading.take(item);
        if (event) yield event;
        if (event?.kind === "end") return;
      }
      throw brokenOff(request.requestId);
    } catch (thrown) {
      const failed = ofThrown(thrown, request.requestId, patience.signal.aborted);
      // A server that has nothing to say for long sends its readers away, to come back.
      if (reading.moved || failed.code === "reply_not_ready") tries = 1;
      if (reading.ended) throw failed;
      await again(retry, tries, failed, patience);
    } finally {
      clearTimeout(timer);
      leaving.abort();
    }
  }
}

// Connect keeps the timer of a stream's own timeout, and with it the process, until it expires.
function expiring(leaving: AbortController, { endsAt }: Patience): NodeJS.Timeout | undefined {
  const left = endsAt - performance.now();
  if (left > MAX_TIMER_MS) return undefined;
  const over = new ConnectError("the stream's time is over", Code.DeadlineExceeded);
  return setTimeout(() => leaving.abort(over), left);
}

function brokenOff(requestId: string): TurnlineError {
  const message = "the stream broke off";
  return new TurnlineError({ code: "unavailable", message, retryable: true, requestId });
}

/** One reader's place in a turn's stream. */
class Reading {
  /** Whether the connection brought something new. */
  moved = false;
  /** Whether the turn itself has failed, which no reading on changes. */
  ended = false;
  #admitted = false;

  /** `request` asks for what comes behind the last event seen. */
  constructor(public request: Request) {}

  /** Moves on behind an item; undefined for one seen before, or of a kind not known here. */
  take({ item }: StreamChatResponse): StreamEvent | undefined {
    const { requestId, after } = this.request;
    switch (item.case) {
      case "admitted": {
        if (this.#admitted) return undefined;
        this.#admitted = this.moved = true;
        // From here on the turn is only attached to: it must not be run anew.
        this.request = after ? { requestId, after } : { requestId };
        const { sessionId, known } = item.value;
        return { kind: "admitted", requestId, sessionId, known };
      }
      case "chunk": {
        const { attempt, index, event } = item.value;
        this.#moveTo({ attempt, index });
        const text = event?.type === EventType.TEXT_DELTA ? event.content : "";
        return { kind: "chunk", attempt, index, event, text };
      }
      case "restart": {
        const { attempt } = item.value;
        this.#moveTo({ attempt, index: -1 });
        return { kind: "restart", attempt };
      }
      case "gap": {
        const { first, last, attempt } = item.value;
        const message = `chunks ${first} to ${last} of attempt ${attempt} are no longer kept`;
        throw new TurnlineError({ code: STREAM_GAP, message, requestId });
      }
      case "end": {
        const { outcome, statusCode } = item.value;
        this.ended = true;
        if (outcome.case === "failure") throw ofFailure(outcome.value, statusCode, requestId);
        return { kind: "end", end: item.value };
      }
      default:
        return undefined;
    }
  }

  #moveTo(after: Position): void {
    this.request = { ...this.request, after };
    this.moved = true;
  }
}
