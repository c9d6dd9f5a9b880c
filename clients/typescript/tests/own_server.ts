import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { Options, TurnlineClient } from "@turnline/client";
import { ChatService } from "@turnline/client/turnline/v1/chat_service_pb";
import { client } from "./rig.js";

export type Service = Partial<ServiceImpl<typeof ChatService>>;

/** Starts a server of a test's own and gives a client of it. */
export async function serving(service: Service, options: Options = {}): Promise<TurnlineClient> {
  const routes = connectNodeAdapter({ routes: (router) => router.service(ChatService, service) });
  const server = createServer(routes);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  return client(`127.0.0.1:${(server.address() as AddressInfo).port}`, options);
}

/** A server that ends calls by what `refuse` gives for the number of a call, and counts them. */
export class Scripted {
  asked = 0;

  /** `pending` is how many answers say that there is no end yet. */
  constructor(
    readonly refuse: (asked: number) => Error | undefined = () => undefined,
    readonly pending = 0,
  ) {}

  get service(): Service {
    const next = () => this.#next();
    const end = { outcome: { case: "reply", value: { result: "x" } } } as const;
    return {
      chat: () => (next(), { end }),
      submit: ({ requestId }) => (next(), { requestId }),
      cancel: () => (next(), {}),
      getReply: () =>
        next() > this.pending
          ? { state: { case: "end", value: end } }
          : { state: { case: "pending", value: {} } },
      async *streamChat() {
        next();
        yield { item: { case: "end", value: end } };
      },
    };
  }

  #next(): number {
    const refusal = this.refuse(++this.asked);
    if (refusal) throw refusal;
    return this.asked;
  }
}
