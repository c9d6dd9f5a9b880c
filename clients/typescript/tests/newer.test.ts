import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ChatService, StreamChatResponseSchema } from "@turnline/client/turnline/v1/chat_service_pb";
import { client, SOON, turn } from "./rig.js";

// A server newer than this client: its stream has an item of a kind, and an event of a type, that
// the client does not know.
const tomorrow = createServer(
  connectNodeAdapter({
    routes: (router) =>
      router.service(ChatService, {
        async *streamChat() {
          const unknown = create(StreamChatResponseSchema);
          unknown.$unknown = [{ no: 99, wireType: WireType.Varint, data: new Uint8Array([1]) }];
          yield unknown;
          const event = { type: 999 as never, typeName: "hologram", content: "not text" };
          yield create(StreamChatResponseSchema, {
            item: { case: "chunk", value: { attempt: 1, event } },
          });
          yield create(StreamChatResponseSchema, {
            item: { case: "end", value: { outcome: { case: "reply", value: { result: "done" } } } },
          });
        },
      }),
  }),
);

test("what a newer server says is skipped or handed on", async () => {
  tomorrow.listen(0, "127.0.0.1");
  await once(tomorrow, "listening");
  after(() => tomorrow.close());
  const { port } = tomorrow.address() as AddressInfo;
  const seen = [];
  for await (const event of client(`127.0.0.1:${port}`).stream(turn("echo", "hi"), SOON)) {
    seen.push(event.kind === "chunk" ? [event.event?.typeName, event.text] : event.kind);
  }

  assert.deepEqual(seen, [["hologram", ""], "end"]);
});
