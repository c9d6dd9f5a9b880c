import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  create,
  createRegistry,
  type DescMessage,
  equals,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { file_turnline_v1_agent_service } from "@turnline/client/turnline/v1/agent_service_pb";
import { file_turnline_v1_chat_service } from "@turnline/client/turnline/v1/chat_service_pb";
import { ChunkSchema, file_turnline_v1_chunk } from "@turnline/client/turnline/v1/chunk_pb";
import { file_turnline_v1_envelope } from "@turnline/client/turnline/v1/envelope_pb";
import { file_turnline_v1_gateway_service } from "@turnline/client/turnline/v1/gateway_service_pb";
import { file_turnline_v1_push_service } from "@turnline/client/turnline/v1/push_service_pb";
import { env } from "./rig.js";

/** One message in the forms of tests/contract/proto/golden. */
interface Vector {
  name: string;
  message: string;
  value: JsonValue;
  binary: string;
}

// Has fields that nobody here knows, which have no place in JSON.
const NEWER = "request-of-a-newer-minor-version";

const registry = createRegistry(
  file_turnline_v1_agent_service,
  file_turnline_v1_chat_service,
  file_turnline_v1_chunk,
  file_turnline_v1_envelope,
  file_turnline_v1_gateway_service,
  file_turnline_v1_push_service,
);
const folder = env("TURNLINE_GOLDEN");
const vectors = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as Vector);

function described(vector: Vector): DescMessage {
  const found = registry.getMessage(vector.message);
  assert.ok(found, vector.message);
  return found;
}

function hex(raw: Uint8Array): string {
  return Buffer.from(raw).toString("hex");
}

/** Fields are written in order of number, and maps in the order in which they were read. */
function written(of: DescMessage, message: ReturnType<typeof create>): string {
  return hex(toBinary(of, message));
}

test("there are vectors", () => assert.ok(vectors.length >= 40));

for (const vector of vectors) {
  const of = described(vector);
  const raw = Buffer.from(vector.binary, "hex");

  test(`the bytes of ${vector.name} have its readable form`, () => {
    const json = toJson(of, fromBinary(of, raw), { useProtoFieldName: true });
    assert.deepEqual(json, vector.value);
  });

  test(`the bytes of ${vector.name} are written as they were read`, () => {
    assert.equal(written(of, fromBinary(of, raw)), vector.binary);
  });

  // Not the same bytes where a map is in another order in JSON: there is no way to have it sorted.
  test(`the readable form of ${vector.name} is written as bytes that are read the same`, () => {
    if (vector.name === NEWER) return;
    const bytes = toBinary(of, fromJson(of, vector.value));
    assert.equal(bytes.length, raw.length);
    assert.ok(equals(of, fromBinary(of, bytes), fromBinary(of, raw)));
  });

  test(`a field that nobody here knows is kept in ${vector.name}`, () => {
    const more = new BinaryWriter().tag(9999, WireType.LengthDelimited).string("of tomorrow");
    const newer = Buffer.concat([raw, more.finish()]);
    assert.equal(written(of, fromBinary(of, newer)), hex(newer));
  });
}

test("a value of an enum that nobody here knows is kept", () => {
  const event = { type: 999 as never, typeName: "hologram" };
  const raw = toBinary(ChunkSchema, create(ChunkSchema, { attempt: 1, event }));

  const read = fromBinary(ChunkSchema, raw);
  assert.deepEqual([read.event?.type, read.event?.typeName], [999, "hologram"]);
  assert.equal(written(ChunkSchema, read), hex(raw));
});
