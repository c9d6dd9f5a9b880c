package dev.turnline.clienttests;

import static dev.turnline.clienttests.ModesTest.all;
import static dev.turnline.clienttests.ModesTest.chunks;
import static dev.turnline.clienttests.Rig.LONG;
import static dev.turnline.clienttests.Rig.awaitAdmitted;
import static dev.turnline.clienttests.Rig.env;
import static dev.turnline.clienttests.Rig.fresh;
import static dev.turnline.clienttests.Rig.held;
import static dev.turnline.clienttests.Rig.refused;
import static dev.turnline.clienttests.Rig.release;
import static dev.turnline.clienttests.Rig.steps;
import static dev.turnline.clienttests.Rig.turn;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.turnline.client.ChatStream;
import dev.turnline.client.Position;
import dev.turnline.client.Reply;
import dev.turnline.client.Retry;
import dev.turnline.client.StreamItem;
import dev.turnline.client.StreamItem.Admitted;
import dev.turnline.client.StreamItem.Chunk;
import dev.turnline.client.StreamItem.End;
import dev.turnline.client.StreamItem.Restart;
import dev.turnline.client.Turn;
import dev.turnline.client.TurnlineClient;
import dev.turnline.client.TurnlineException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Calls and streams whose connection is cut in the middle. */
class ResumeTest {
  private static final Retry SOON = new Retry(5, Duration.ofMillis(50), Duration.ofSeconds(5));

  private final Proxy proxy = new Proxy(env("TURNLINE_OPEN"));
  private final TurnlineClient far = behind(proxy, SOON);
  private final TurnlineClient near = Rig.open();

  ResumeTest() throws IOException {}

  @AfterEach
  void close() throws IOException {
    far.close();
    near.close();
    proxy.close();
  }

  /** A client behind a proxy. */
  private static TurnlineClient behind(Proxy proxy, Retry retry) {
    return TurnlineClient.builder(proxy.target())
        .timeout(LONG)
        .retry(retry)
        .build();
  }

  @Test
  void aStreamGoesOnBehindTheLastPieceAfterEachCut() {
    Turn turn = steps(fresh());
    List<StreamItem> items = new ArrayList<>();

    for (StreamItem item : far.stream(turn)) {
      items.add(item);
      if (item instanceof Chunk chunk && !chunk.text().isEmpty()) {
        // What comes next is not made before the cut, so it comes over another connection.
        proxy.cut();
        release(turn, Integer.parseInt(chunk.text().strip()) + 1);
      }
    }

    assertTrue(proxy.connections() >= 5);
    List<Position> places = chunks(items).stream().map(Chunk::position).toList();
    assertEquals(1, items.stream().filter(Admitted.class::isInstance).count());
    assertEquals(
        IntStream.range(0, items.size() - 2).mapToObj(i -> new Position(1, i)).toList(), places);
    String streamed = chunks(items).stream().map(Chunk::text).reduce("", String::concat);
    assertEquals("1 2 3 4 5 ", streamed);
    assertEquals("1 2 3 4 5 ", ((End) items.get(items.size() - 1)).reply().text());
  }

  @Test
  void aStreamCutWhileItsTurnRunsGoesOn() {
    Turn turn = held(fresh());
    StringBuilder text = new StringBuilder();

    for (StreamItem item : far.stream(turn)) {
      if (item instanceof Chunk chunk) {
        text.append(chunk.text());
        if (chunk.text().equals("holding ")) {
          proxy.cut();
          release(turn);
        }
      }
    }

    assertEquals("holding done", text.toString());
  }

  @Test
  void aNewAttemptIsToldAndItsPlacesBeginAgain() {
    List<StreamItem> items = all(near.stream(turn("flaky", "x")));

    int at = items.indexOf(new Restart(2));
    assertTrue(at > 0);
    assertTrue(chunks(items.subList(0, at)).stream().allMatch(c -> c.position().attempt() == 1));
    assertTrue(
        chunks(items.subList(at, items.size())).stream().allMatch(c -> c.position().attempt() == 2));
    assertEquals("kept", ((End) items.get(items.size() - 1)).reply().text());
  }

  @Test
  void aNewAttemptIsToldOnceHoweverOftenTheConnectionIsCut() {
    List<StreamItem> items = new ArrayList<>();

    for (StreamItem item : far.stream(turn("flaky", "x"))) {
      items.add(item);
      proxy.cut();
    }

    List<Position> places = chunks(items).stream().map(Chunk::position).toList();
    assertTrue(items.stream().filter(Restart.class::isInstance).count() <= 1);
    assertEquals(new HashSet<>(places).size(), places.size());
    assertTrue(items.get(items.size() - 1) instanceof End);
  }

  @Test
  void aStreamGivesUpWhenTheServerStaysAway() {
    Turn turn = held(fresh());
    ChatStream stream = far.stream(turn);

    TurnlineException error =
        refused(
            () -> {
              for (StreamItem item : stream) {
                proxy.refuse(item instanceof Chunk);
              }
            });

    assertEquals("unavailable", error.code());
    assertTrue(error.retryable());
    assertEquals(turn.requestId(), error.requestId());
    assertFalse(stream.hasNext());
    release(turn);
  }

  @Test
  void aCallWhoseConnectionIsCutIsMadeAgainAndItsTurnRunsOnce() throws Exception {
    Turn turn = held(fresh());
    CompletableFuture<Reply> call = CompletableFuture.supplyAsync(() -> far.chat(turn));
    awaitAdmitted(near, turn.requestId());

    proxy.cut();
    release(turn);

    assertEquals("holding done", call.get().text());
    assertEquals("1", near.chat(turn(turn.sessionId(), "turns", "x")).text());
  }

  @Test
  void aServerThatComesBackInTimeIsNotMissed() throws Exception {
    proxy.refuse(true);
    Retry patience = new Retry(1000, Duration.ofMillis(50), Duration.ofSeconds(5));
    try (TurnlineClient patient = behind(proxy, patience)) {
      CompletableFuture<Reply> call =
          CompletableFuture.supplyAsync(() -> patient.chat(turn("echo", "still here")));
      proxy.awaitRefused();
      proxy.refuse(false);

      assertEquals("still here ", call.get().text());
    }
  }
}
