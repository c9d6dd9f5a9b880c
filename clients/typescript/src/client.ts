import { randomUUID } from "node:crypto";
import type { SecureClientSessionOptions } from "node:http2";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions as RpcOptions, type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ofFailure, ofThrown, TurnlineError } from "./errors.js";
import type { ChatRequestSchema, TurnEnd } from "./gen/turnline/v1/chat_pb.js";
import { ChatService, type TurnState } from "./gen/turnline/v1/chat_service_pb.js";
import { again, pause, type Patience, type Retry } from "./retry.js";
import { type Admitted, type Position, read, type StreamEvent } from "./stream.js";

const TIMEOUT_MS = 300_000;
// A server may wait less for a turn's end than it is asked to.
const ASK_AGAIN_MS = 200;
// A connection that brings nothing for so long is tried, and given up after as long again.
const SILENCE_MS = 20_000;

/** How a client connects; by default in plain text, without a token. */
export interface Options {
  /** How to connect over TLS; true trusts what Node.js trusts. */
  tls?: boolean | SecureClientSessionOptions;
  /** A token, or what is asked for one before every try.  It is never logged. */
  token?: string | (() => string | Promise<string>);
  /**
   * Sends the token without TLS to a host that is not this one, where everybody on the way can
   * read it; without it that is refused.
   */
  allowPlaintextToken?: boolean;
  /** How long a call may take with all its tries; by default 300 000, Infinity has no limit. */
  timeoutMs?: number;
  /** Bounds the tries of a call, and those of a stream between two events; by default 5. */
  maxTries?: number;
  /**
   * Pause before the second try, by default 200; doubled with each further one, up to 5 seconds,
   * with jitter.  A longer pause that the server asks for is kept.
   */
  backoffMs?: number;
}

/** One user message. */
export interface Turn {
  /** Names the session; never empty. */
  sessionId: string;
  /** Names the turn; by default one is made.  Used again with the same request it attaches. */
  requestId?: string;
  /** What to run. */
  request: MessageInitShape<typeof ChatRequestSchema>;
}

/** How long to wait; a turn goes on when its caller leaves. */
export interface CallOptions {
  signal?: AbortSignal;
  /** By default the client's. */
  timeoutMs?: number;
}

export interface ReplyOptions extends CallOptions {
  /** How long to wait for the end, by default not at all. */
  waitMs?: number;
}

/**
 * Talks to one server.
 *
 * Each turn is named by a request id, so that a call which was cut off can be repeated: the server
 * attaches to the turn or replays its end, and never runs it twice.  All methods fail with a
 * `TurnlineError`.
 */
export class TurnlineClient {
  readonly #service: Client<typeof ChatService>;
  readonly #sessions: Http2SessionManager;
  readonly #token: Options["token"];
  readonly #retry: Retry;
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();

  /**
   * Makes a client of the server at `host:port`; it connects with the first call.
   *
   * Throws a plain `Error` for a token without TLS, see `allowPlaintextToken`.
   */
  constructor(target: string, options: Options = {}) {
    const baseUrl = `${options.tls ? "https" : "http"}://${target}`;
    const readable = options.token !== undefined && !options.tls && !loopback(baseUrl);
    if (readable && !options.allowPlaintextToken) {
      throw new Error(`a token without TLS to ${target}: set tls, or allowPlaintextToken`);
    }
    this.#sessions = new Http2SessionManager(
      baseUrl,
      { pingIntervalMs: SILENCE_MS, pingTimeoutMs: SILENCE_MS },
      typeof options.tls === "object" ? options.tls : {},
    );
    const transport = createGrpcTransport({ baseUrl, sessionManager: this.#sessions });
    this.#service = createClient(ChatService, transport);
    this.#token = options.token;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#retry = { maxTries: options.maxTries ?? 5, backoffMs: options.backoffMs ?? 200 };
  }

  /** Ends the connection; what still runs on it, or is asked of it later, is `cancelled`. */
  close(): void {
    this.#closing.abort();
    this.#sessions.abort();
  }

  /** Runs a turn and waits for its answer. */
  async chat(turn: Turn, options: CallOptions = {}): Promise<TurnEnd> {
    const { requestId, request } = named(turn);
    const answer = await this.#call(requestId, options, (rpc) => this.#service.chat(request, rpc));
    return answered(answer.end, requestId);
  }

  /** Admits a turn, whose end `reply` has, and whose events `resume`. */
  async submit(turn: Turn, options: CallOptions = {}): Promise<Admitted> {
    const { requestId, request } = named(turn);
    const answer = await this.#call(requestId, options, (rpc) =>
      this.#service.submit(request, rpc),
    );
    return { kind: "admitted", requestId, sessionId: answer.sessionId, known: answer.known };
  }

  /** Gives the answer of a turn, undefined while it has none; a turn that failed is an error. */
  async reply(requestId: string, options: ReplyOptions = {}): Promise<TurnEnd | undefined> {
    const patience = this.#patience(options);
    const until = performance.now() + (options.waitMs ?? 0);
    for (;;) {
      const wait = durationFromMs(Math.ceil(Math.max(until - performance.now(), 0)));
      const { state } = await this.#patiently(requestId, patience, (rpc) =>
        this.#service.getReply({ requestId, wait }, rpc),
      );
      if (state.case === "end") return answered(state.value, requestId);
      const left = Math.min(until, patience.endsAt) - performance.now();
      if (left <= ASK_AGAIN_MS) return undefined;
      await pause(ASK_AGAIN_MS, patience, requestId);
    }
  }

  /** Stops a turn, queued or running, and says which it was, or that it had ended. */
  async cancel(requestId: string, options: CallOptions = {}): Promise<TurnState> {
    const answer = await this.#call(requestId, options, (rpc) =>
      this.#service.cancel({ requestId }, rpc),
    );
    return answer.state;
  }

  /**
   * Runs a turn and gives its events as they come.
   *
   * A connection that is cut is made anew and resumes behind the last event seen; an event comes
   * once.  It throws when the turn failed, when chunks are no longer kept (`STREAM_GAP`), or when
   * there was no connection in `maxTries` tries.
   */
  stream(turn: Turn, options: CallOptions = {}): AsyncGenerator<StreamEvent, void> {
    return this.#read(named(turn).request, options);
  }

  /** Gives the events of a turn that was admitted before, from behind a place, else all. */
  resume(
    requestId: string,
    after?: Position,
    options: CallOptions = {},
  ): AsyncGenerator<StreamEvent, void> {
    return this.#read(after ? { requestId, after } : { requestId }, options);
  }

  #read(
    request: Parameters<typeof read>[0],
    options: CallOptions,
  ): AsyncGenerator<StreamEvent, void> {
    const patience = this.#patience(options);
    return read(request, this.#retry, patience, async (request, signal) => {
      const rpc = await this.#signed(request.requestId, { endsAt: Infinity, signal });
      return this.#service.streamChat(request, rpc);
    });
  }

  #call<Answer>(
    requestId: string,
    options: CallOptions,
    method: (rpc: RpcOptions) => Promise<Answer>,
  ): Promise<Answer> {
    return this.#patiently(requestId, this.#patience(options), method);
  }

  async #patiently<Answer>(
    requestId: string,
    patience: Patience,
    method: (rpc: RpcOptions) => Promise<Answer>,
  ): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      try {
        return await method(await this.#signed(requestId, patience));
      } catch (thrown) {
        const failed = ofThrown(thrown, requestId, patience.signal.aborted);
        await again(this.#retry, tries, failed, patience);
      }
    }
  }

  #patience({ signal, timeoutMs }: CallOptions): Patience {
    const closing = this.#closing.signal;
    return {
      signal: signal ? AbortSignal.any([signal, closing]) : closing,
      endsAt: performance.now() + (timeoutMs ?? this.#timeoutMs),
    };
  }

  async #signed(requestId: string, { endsAt, signal }: Patience): Promise<RpcOptions> {
    const rpc: RpcOptions = { signal };
    if (endsAt !== Infinity) rpc.timeoutMs = Math.max(1, Math.ceil(endsAt - performance.now()));
    if (this.#token === undefined) return rpc;
    try {
      const token = typeof this.#token === "string" ? this.#token : await this.#token();
      return { ...rpc, headers: { authorization: `Bearer ${token}` } };
    } catch (cause) {
      const [code, message] = ["unauthenticated", "there is no token"];
      throw new TurnlineError({ code, message, requestId, cause });
    }
  }
}

/** Whether a server is on this machine; a name that is not surely so is not. */
function loopback(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

function named(turn: Turn): { requestId: string; request: Required<Turn> } {
  const requestId = turn.requestId || randomUUID();
  return { requestId, request: { ...turn, requestId } };
}

function answered(end: TurnEnd | undefined, requestId: string): TurnEnd {
  if (!end) throw new TurnlineError({ code: "internal", message: "no end", requestId });
  if (end.outcome.case === "failure") throw ofFailure(end.outcome.value, end.statusCode, requestId);
  return end;
}
