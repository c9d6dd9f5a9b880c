package dev.turnline.clienttests;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.turnline.client.TurnlineException;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * One way in which a server ends a call, of tests/contract/proto/statuses.json.
 *
 * @param tries how many calls a client makes that may make three
 */
record Ended(String name, JsonObject status, String trailer, Told error, int tries) {

  /** What a caller is told. */
  record Told(
      String code,
      String message,
      String field,
      int statusCode,
      boolean retryable,
      Duration retryAfter,
      String requestId) {

    static Told of(TurnlineException error) {
      return new Told(
          error.code(),
          error.getMessage(),
          error.field(),
          error.statusCode(),
          error.retryable(),
          error.retryAfter().orElse(Duration.ZERO),
          error.requestId());
    }

    private static Told read(JsonObject json) {
      return new Told(
          json.get("code").getAsString(),
          json.get("message").getAsString(),
          json.get("field").getAsString(),
          json.get("status_code").getAsInt(),
          json.get("retryable").getAsBoolean(),
          Duration.ofMillis(Math.round(json.get("retry_after").getAsDouble() * 1000)),
          json.get("request_id").getAsString());
    }
  }

  static Stream<Ended> all() {
    try {
      String text = Files.readString(Path.of(Rig.env("TURNLINE_STATUSES")));
      return StreamSupport.stream(JsonParser.parseString(text).getAsJsonArray().spliterator(), false)
          .map(JsonElement::getAsJsonObject)
          .map(Ended::read);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  static Ended named(String name) {
    return all().filter(row -> row.name.equals(name)).findAny().orElseThrow();
  }

  private static Ended read(JsonObject json) {
    return new Ended(
        json.get("name").getAsString(),
        json.get("status").getAsJsonObject(),
        json.get("trailer").getAsString(),
        Told.read(json.get("error").getAsJsonObject()),
        json.get("tries").getAsInt());
  }

  /** What a server ends a call with. */
  StatusRuntimeException refusal() {
    if (trailer.isEmpty()) {
      return Status.fromCodeValue(status.get("number").getAsInt())
          .withDescription(status.get("message").getAsString())
          .asRuntimeException();
    }
    try {
      byte[] raw = HexFormat.of().parseHex(trailer);
      return StatusProto.toStatusRuntimeException(com.google.rpc.Status.parseFrom(raw));
    } catch (InvalidProtocolBufferException error) {
      throw new AssertionError(error);
    }
  }

  @Override
  public String toString() {
    return name;
  }
}
