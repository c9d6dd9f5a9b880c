package dev.turnline.clienttests;

import static dev.turnline.clienttests.Rig.LONG;
import static dev.turnline.clienttests.Rig.awaitAdmitted;
import static dev.turnline.clienttests.Rig.env;
import static dev.turnline.clienttests.Rig.fresh;
import static dev.turnline.clienttests.Rig.held;
import static dev.turnline.clienttests.Rig.refused;
import static dev.turnline.clienttests.Rig.turn;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.turnline.client.ChatStream;
import dev.turnline.client.Position;
import dev.turnline.client.Reply;
import dev.turnline.client.Retry;
import dev.turnline.client.Turn;
import dev.turnline.client.TurnlineClient;
import dev.turnline.client.TurnlineException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every class of error: what its code, field and hint are, and what is tried again. */
class RefusalsTest {
  private final TurnlineClient client = Rig.open();
  private final TurnlineClient strict = Rig.strict(env("TURNLINE_TOKEN"), 1);

  @AfterEach
  void close() {
    client.close();
    strict.close();
  }

  @Test
  void withoutATokenNobodyIsLetIn() {
    try (TurnlineClient nobody = Rig.strict(null, 1)) {
      TurnlineException error = refused(() -> nobody.chat(turn("echo", "x")));

      assertEquals("unauthenticated", error.code());
      assertEquals(401, error.statusCode());
      assertFalse(error.retryable());
    }
  }

  @Test
  void aTokenIsInNoTextOfAnError() {
    try (TurnlineClient stranger = Rig.strict("secret-token", 1)) {
      TurnlineException error = refused(() -> stranger.chat(turn("echo", "x")));

      assertFalse((error + " " + error.getCause()).contains("secret-token"));
    }
  }

  @Test
  void aTokenThatCannotBeHadIsTheCause() {
    IllegalStateException away = new IllegalStateException("the provider is away");
    TurnlineClient.Builder builder = TurnlineClient.builder(env("TURNLINE_OPEN"));
    builder.token(
        () -> {
          throw away;
        });
    try (TurnlineClient nobody = builder.build()) {
      TurnlineException error = refused(() -> nobody.chat(turn("echo", "x")));

      assertEquals("unauthenticated", error.code());
      assertSame(away, error.getCause().getCause());
    }
  }

  @Test
  void aServerThatCannotBeTrustedIsNotSpokenTo() {
    TurnlineClient.Builder builder = TurnlineClient.builder(env("TURNLINE_STRICT")).tls();
    try (TurnlineClient wary = builder.retry(Retry.NEVER).build()) {
      assertEquals("unavailable", refused(() -> wary.chat(turn("echo", "x"))).code());
    }
  }

  @Test
  void anInvalidRequestNamesItsField() {
    TurnlineException error = refused(() -> client.submit(turn("echo", "")));

    assertEquals(List.of("invalid_request", "prompt"), List.of(error.code(), error.field()));
    assertEquals(400, error.statusCode());
    assertTrue(error.toString().contains("invalid_request: "));
  }

  @Test
  void anUnknownAgentIsSaid() {
    TurnlineException error = refused(() -> client.chat(turn("nobody", "x")));

    assertEquals(List.of("unknown_agent", "agent"), List.of(error.code(), error.field()));
  }

  @Test
  void anUnknownTurnIsNotFound() {
    String id = fresh();

    List<TurnlineException> errors =
        List.of(
            refused(() -> client.reply(id, Duration.ZERO)),
            refused(() -> client.cancel(id)),
            refused(() -> client.resume(id, Position.BEGINNING).next()));

    for (TurnlineException error : errors) {
      assertEquals(List.of("not_found", id), List.of(error.code(), error.requestId()));
      assertEquals(404, error.statusCode());
    }
  }

  @Test
  void aTurnOfAnotherUserIsNotFound() {
    Turn turn = turn("echo", "x");
    strict.submit(turn);

    try (TurnlineClient other = Rig.strict(env("TURNLINE_OTHER_TOKEN"), 1)) {
      String code = refused(() -> other.reply(turn.requestId(), Duration.ZERO)).code();

      assertEquals("not_found", code);
    }
  }

  @Test
  void anIdUsedForSomethingElseIsRefused() {
    Turn turn = turn("echo", "one");
    client.submit(turn);

    Turn other = turn(turn.sessionId(), "echo", "two").named(turn.requestId());
    TurnlineException error = refused(() -> client.submit(other));

    assertEquals(List.of("request_id_reused", "request_id"), List.of(error.code(), error.field()));
    assertEquals(turn.requestId(), error.requestId());
  }

  @Test
  void whatIsTooLargeIsRefusedAndNotTriedAgain() {
    try (TurnlineClient patient = Rig.strict(env("TURNLINE_TOKEN"), 5)) {
      TurnlineException error = refused(() -> patient.chat(turn("echo", "x".repeat(200_000))));

      assertEquals("resource_exhausted", error.code());
      assertFalse(error.retryable());
    }
  }

  @Test
  void aFullSessionSaysWhenToComeBack() {
    Turn first = held(fresh());
    strict.submit(first);
    strict.submit(turn(first.sessionId(), "echo", "x"));

    TurnlineException error = refused(() -> strict.submit(turn(first.sessionId(), "echo", "x")));

    assertEquals("session_queue_full", error.code());
    assertEquals(429, error.statusCode());
    assertTrue(error.retryable());
    assertTrue(error.retryAfter().orElseThrow().toMillis() > 0);
    strict.cancel(first.requestId());
  }

  @Test
  void aFullSessionIsAskedAgain() {
    Turn first = held(fresh());
    strict.submit(first);
    strict.submit(turn(first.sessionId(), "echo", "x"));
    Turn third = turn(first.sessionId(), "echo", "at last");
    // The token is asked for before each try: at the second one, the first was refused.
    AtomicInteger tries = new AtomicInteger();
    Supplier<String> token =
        () -> {
          if (tries.incrementAndGet() == 2) {
            strict.cancel(first.requestId());
          }
          return env("TURNLINE_TOKEN");
        };

    try (TurnlineClient patient = Rig.strictAsking(token, 1000)) {
      assertEquals("at last ", patient.chat(third).text());
    }
    assertTrue(tries.get() >= 2);
  }

  @ParameterizedTest
  @ValueSource(strings = {"chat", "stream", "reply"})
  void aFailedTurnIsAnErrorOfItsCaller(String way) {
    Turn turn = turn("broken", "x");

    TurnlineException error =
        refused(
            () -> {
              switch (way) {
                case "chat" -> client.chat(turn);
                case "stream" -> ModesTest.all(client.stream(turn));
                default -> {
                  client.submit(turn);
                  client.reply(turn.requestId(), LONG);
                }
              }
            });

    assertEquals("agent_failed", error.code());
    assertEquals(500, error.statusCode());
    assertFalse(error.retryable());
    assertFalse(error.getMessage().contains("secret"));
    assertEquals(turn.requestId(), error.requestId());
  }

  @Test
  void anAgentsOwnStatusAndWordsReachItsCaller() {
    TurnlineException error = refused(() -> client.chat(turn("refusing", "me")));

    assertEquals(402, error.statusCode());
    assertEquals("no credit for me", error.getMessage());
  }

  @Test
  void aCallersDeadlineEndsItsWaitButNotTheTurn() {
    Turn turn = held(fresh());
    client.submit(turn);
    TurnlineClient hasty = client.withTimeout(Duration.ofMillis(500));

    TurnlineException asked = refused(() -> hasty.chat(turn));
    Optional<Reply> pending = client.reply(turn.requestId(), Duration.ZERO);

    assertEquals("deadline_exceeded", asked.code());
    assertEquals(turn.requestId(), asked.requestId());
    assertFalse(asked.retryable());
    assertEquals(Optional.empty(), pending);
    client.cancel(turn.requestId());
  }

  @Test
  void aStreamHasADeadlineToo() {
    Turn turn = held(fresh());
    client.submit(turn);
    ChatStream stream = client.withTimeout(Duration.ofMillis(500)).stream(turn);

    assertEquals("deadline_exceeded", refused(() -> ModesTest.all(stream)).code());
    client.cancel(turn.requestId());
  }

  @Test
  void theServersOwnDeadlineIsToldApart() {
    TurnlineException error = refused(() -> strict.chat(held(fresh())));

    assertEquals("turn_deadline_exceeded", error.code());
    assertEquals(504, error.statusCode());
  }

  @Test
  void aGapEndsAStreamAndTheWholeAnswerCanBeFetched() {
    String prompt =
        IntStream.range(0, 1000).mapToObj(n -> "word" + n).collect(Collectors.joining(" "));
    ChatStream asked = strict.stream(turn("echo", prompt));
    asked.next();
    asked.close();
    Optional<Reply> reply = strict.reply(asked.requestId(), LONG);

    ChatStream late = strict.resume(asked.requestId(), Position.BEGINNING);
    late.next();
    TurnlineException error = refused(late::next);

    assertEquals(TurnlineException.STREAM_GAP, error.code());
    assertTrue(error.getMessage().startsWith("chunks 0 to "));
    assertFalse(late.hasNext());
    assertEquals(prompt + " ", reply.orElseThrow().text());
  }

  @Test
  void nobodyThereIsTriedAgainUntilTheTriesAreUsedUp() {
    Retry retry = new Retry(3, Duration.ofMillis(200), Duration.ofSeconds(5));
    long began = System.nanoTime();
    try (TurnlineClient lost = TurnlineClient.builder("127.0.0.1:1").retry(retry).build()) {
      TurnlineException error = refused(() -> lost.chat(turn("echo", "x")));

      assertEquals("unavailable", error.code());
      assertTrue(error.retryable());
      // Two pauses, each shortened by half at most.
      assertTrue(System.nanoTime() - began >= Duration.ofMillis(300).toNanos());
    }
  }

  @Test
  void noPauseIsBegunThatEndsBehindTheDeadline() {
    Retry retry = new Retry(5, LONG.multipliedBy(10), LONG.multipliedBy(10));
    TurnlineClient.Builder builder = TurnlineClient.builder("127.0.0.1:1").retry(retry);
    try (TurnlineClient lost = builder.timeout(LONG).build()) {
      TurnlineException error =
          assertTimeoutPreemptively(
              LONG.minusSeconds(1), () -> refused(() -> lost.chat(turn("echo", "x"))));

      assertEquals("unavailable", error.code());
    }
  }

  @Test
  void aDrainingServerSaysWhenToComeBack() throws Exception {
    Turn held = held("s1");
    TurnlineClient.Builder builder = TurnlineClient.builder(env("TURNLINE_DRAINING"));
    try (TurnlineClient leaving = builder.retry(Retry.NEVER).timeout(LONG).build()) {
      CompletableFuture<TurnlineException> call =
          CompletableFuture.supplyAsync(() -> refused(() -> leaving.chat(held)));
      awaitAdmitted(leaving, held.requestId());
      // Those who wait are sent away before it ends.
      ProcessHandle.of(Long.parseLong(env("TURNLINE_DRAINING_PID"))).orElseThrow().destroy();
      TurnlineException error = call.get(LONG.toSeconds(), TimeUnit.SECONDS);

      assertEquals("draining", error.code());
      assertEquals(503, error.statusCode());
      assertTrue(error.retryable());
      assertEquals(Optional.of(Duration.ofSeconds(1)), error.retryAfter());
    }
  }
}
