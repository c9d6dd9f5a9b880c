import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { StreamChatResponseSchema } from "@turnline/client/turnline/v1/chat_service_pb";
import { RetryHint } from "@turnline/client/turnline/v1/failure_pb";
import { type Service, serving } from "./own_server.js";
import { refused, Seen, SOON, turn } from "./rig.js";

// Newer than this client: the stream has an item of a kind, and an event of a type, that the
// client does not know.
const tomorrow: Service = {
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
};

test("what a newer server says is skipped or handed on", async () => {
  const seen = [];
  for await (const event of (await serving(tomorrow)).stream(turn("echo", "hi"), SOON)) {
    seen.push(event.kind === "chunk" ? [event.event?.typeName, event.text] : event.kind);
  }

  assert.deepEqual(seen, [["hologram", ""], "end"]);
});

test("a turn that was admitted is not run anew", async () => {
  const [asked, all]: [string[], Seen] = [[], new Seen()];
  // Ends a stream without its end, and then knows its turn no more.
  const forgetful = await serving({
    async *streamChat({ requestId, request }) {
      asked.push(requestId);
      if (!request) throw new ConnectError("no such turn", Code.NotFound);
      yield create(StreamChatResponseSchema, {
        item: { case: "admitted", value: { requestId } },
      });
    },
  });

  const failed = await refused(all.read(forgetful.stream(turn("echo", "hi"), SOON)));
  assert.deepEqual([failed.code, all.kinds], ["not_found", ["admitted"]]);
  assert.deepEqual(asked, [failed.requestId, failed.requestId]);
});

test("a turn that failed is not read again", async () => {
  let asked = 0;
  // Failed in a way that another turn of the same kind may not.
  const failing = await serving({
    async *streamChat() {
      asked++;
      const failure = { code: "busy", retry: RetryHint.NOW };
      yield create(StreamChatResponseSchema, {
        item: { case: "end", value: { outcome: { case: "failure", value: failure } } },
      });
    },
  });

  const failed = await refused(new Seen().read(failing.stream(turn("echo", "hi"), SOON)));
  assert.deepEqual([failed.code, failed.retryable, asked], ["busy", true, 1]);
});
