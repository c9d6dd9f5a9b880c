package dev.turnline.clienttests;

import static dev.turnline.clienttests.OwnServer.THREE_TRIES;
import static dev.turnline.clienttests.Rig.LONG;
import static dev.turnline.clienttests.Rig.refused;
import static dev.turnline.clienttests.Rig.turn;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.turnline.client.Reply;
import dev.turnline.client.Retry;
import dev.turnline.client.StreamItem.End;
import dev.turnline.client.TurnlineClient;
import dev.turnline.clienttests.Ended.Told;
import dev.turnline.v1.ChatReply;
import dev.turnline.v1.GetReplyResponse;
import dev.turnline.v1.PendingTurn;
import dev.turnline.v1.StreamChatResponse;
import dev.turnline.v1.SubmitResponse;
import dev.turnline.v1.TurnEnd;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every way in which a server ends a call: what the caller is told, and how often it is tried. */
class StatusesTest {
  static final GetReplyResponse PENDING =
      GetReplyResponse.newBuilder().setPending(PendingTurn.newBuilder()).build();
  private static final TurnEnd END =
      TurnEnd.newBuilder().setReply(ChatReply.newBuilder().setResult("x")).build();
  // Streams go on after it.
  private static final String STILL_RUNNING = "reply_not_ready";

  static Stream<Ended> rows() {
    return Ended.all();
  }

  static Stream<Ended> rowsOfStreams() {
    return Ended.all().filter(row -> !row.name().equals(STILL_RUNNING));
  }

  @Test
  void thereAreStatuses() {
    assertTrue(Ended.all().count() >= 30);
  }

  @ParameterizedTest
  @MethodSource("rows")
  void aCallThatAStatusEndsTellsItAndIsMadeAsOftenAsItMay(Ended row) {
    try (OwnServer server = new OwnServer(asked -> List.of(row.refusal()));
        TurnlineClient client = server.client(THREE_TRIES)) {
      Told told = Told.of(refused(() -> client.submit(turn("echo", "x").named("r1"))));

      assertEquals(row.error(), told);
      assertEquals(row.tries(), server.asked());
    }
  }

  @ParameterizedTest
  @MethodSource("rowsOfStreams")
  void aStreamThatAStatusEndsDoesTheSame(Ended row) {
    try (OwnServer server = new OwnServer(asked -> List.of(row.refusal()));
        TurnlineClient client = server.client(THREE_TRIES)) {
      Told told = Told.of(refused(() -> client.stream(turn("echo", "x").named("r1")).next()));

      assertEquals(row.error(), told);
      assertEquals(row.tries(), server.asked());
    }
  }

  @Test
  void aReaderWhoIsSentAwayForTheSilenceComesBackAsOftenAsItTakes() {
    Ended away = Ended.named(STILL_RUNNING);
    StreamChatResponse end = StreamChatResponse.newBuilder().setEnd(END).build();
    try (OwnServer server = new OwnServer(asked -> List.of(asked < 8 ? away.refusal() : end));
        TurnlineClient client = server.client(THREE_TRIES)) {
      assertInstanceOf(End.class, client.stream(turn("echo", "x")).next());
      assertEquals(8, server.asked());
    }
  }

  @Test
  void aReplyIsAskedForAgainWithAPauseWhileTheServerWaitsLess() {
    GetReplyResponse end = GetReplyResponse.newBuilder().setEnd(END).build();
    long began = System.nanoTime();
    try (OwnServer server = new OwnServer(asked -> List.of(asked < 4 ? PENDING : end));
        TurnlineClient client = server.client(THREE_TRIES)) {
      assertEquals("x", client.reply("r1", LONG).orElseThrow().text());
      assertEquals(4, server.asked());
    }
    assertTrue(System.nanoTime() - began >= Duration.ofMillis(600).toNanos());
  }

  @Test
  void aReplyIsNotWaitedForLongerThanWasAskedNorBeyondTheDeadline() {
    try (OwnServer server = new OwnServer(asked -> List.of(PENDING));
        TurnlineClient client = server.client(THREE_TRIES)) {
      Optional<Reply> waited = client.reply("r1", Duration.ofMillis(500));
      // With a pause of 0.2 s between two.
      assertTrue(server.asked() <= 3);
      Optional<Reply> bounded = client.withTimeout(Duration.ofSeconds(1)).reply("r1", LONG);

      assertEquals(List.of(Optional.empty(), Optional.empty()), List.of(waited, bounded));
    }
  }

  @Test
  void callersComeBackSomeTimeAfterThePauseTheyWereAskedFor() {
    Ended away = Ended.named("draining_for_long");
    SubmitResponse admitted = SubmitResponse.getDefaultInstance();
    List<Long> calls = new CopyOnWriteArrayList<>();
    try (OwnServer server =
            new OwnServer(
                asked -> {
                  calls.add(System.nanoTime());
                  return List.of(asked == 1 ? away.refusal() : admitted);
                });
        TurnlineClient client =
            server.client(new Retry(5, Duration.ofMillis(400), Duration.ofSeconds(5)))) {
      client.submit(turn("echo", "x"));
    }
    // 0.4 s as asked, and half of a half of that at least.
    assertTrue(calls.get(1) - calls.get(0) >= Duration.ofMillis(500).toNanos());
  }
}
