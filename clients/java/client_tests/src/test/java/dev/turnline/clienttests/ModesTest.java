package dev.turnline.clienttests;

import static dev.turnline.clienttests.Rig.LONG;
import static dev.turnline.clienttests.Rig.awaitAdmitted;
import static dev.turnline.clienttests.Rig.env;
import static dev.turnline.clienttests.Rig.fresh;
import static dev.turnline.clienttests.Rig.held;
import static dev.turnline.clienttests.Rig.refused;
import static dev.turnline.clienttests.Rig.release;
import static dev.turnline.clienttests.Rig.turn;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import com.google.protobuf.Struct;
import dev.turnline.client.ChatStream;
import dev.turnline.client.Position;
import dev.turnline.client.Reply;
import dev.turnline.client.StreamItem;
import dev.turnline.client.StreamItem.Admitted;
import dev.turnline.client.StreamItem.Chunk;
import dev.turnline.client.StreamItem.End;
import dev.turnline.client.Turn;
import dev.turnline.client.TurnlineClient;
import dev.turnline.client.TurnlineException;
import dev.turnline.v1.TurnState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;

/** Every way to ask, and what callers are told when all is well. */
class ModesTest {
  private final TurnlineClient client = Rig.open();

  @AfterEach
  void close() {
    client.close();
  }

  static List<StreamItem> all(ChatStream stream) {
    List<StreamItem> items = new ArrayList<>();
    stream.forEachRemaining(items::add);
    return items;
  }

  static List<Chunk> chunks(List<StreamItem> items) {
    return items.stream().filter(Chunk.class::isInstance).map(Chunk.class::cast).toList();
  }

  @Test
  void chatGivesTheAnswer() {
    String id = fresh();

    Reply reply = client.chat(Turn.of("s1", "say it").named(id));

    assertEquals(new Reply(id, "s1", "say it ", 200, Struct.getDefaultInstance(), 1), reply);
  }

  @Test
  void chatOverTlsAsksForItsTokenEachTime() {
    AtomicInteger asked = new AtomicInteger();
    TurnlineClient.Builder builder =
        TurnlineClient.builder(env("TURNLINE_STRICT"))
            .tls(Rig.authorities())
            .token(
                () -> {
                  asked.incrementAndGet();
                  return env("TURNLINE_TOKEN");
                });
    try (TurnlineClient strict = builder.build()) {
      strict.chat(turn("echo", "a"));
      assertEquals("b ", strict.chat(turn("echo", "b")).text());
    }

    assertEquals(2, asked.get());
  }

  @Test
  void theSameRequestIdIsTheSameTurn() {
    String session = fresh();
    Turn turn = turn(session, "turns", "x");

    Reply first = client.chat(turn);
    Reply again = client.chat(turn);
    Reply after = client.chat(turn(session, "turns", "x"));

    assertEquals(first, again);
    assertEquals(List.of("0", "1"), List.of(first.text(), after.text()));
  }

  @Test
  void aStreamGivesThePiecesThenTheEnd() {
    ChatStream stream = client.stream(turn("echo", "one two"));

    List<StreamItem> items = all(stream);

    Admitted admitted = assertInstanceOf(Admitted.class, items.get(0));
    End end = assertInstanceOf(End.class, items.get(items.size() - 1));
    List<Chunk> chunks = chunks(items);
    assertEquals(items.size() - 2, chunks.size());
    for (int index = 0; index < chunks.size(); index++) {
      assertEquals(new Position(1, index), chunks.get(index).position());
    }
    String streamed = chunks.stream().map(Chunk::text).reduce("", String::concat);
    assertEquals("one two ", streamed);
    assertEquals(streamed, end.reply().text());
    assertEquals(stream.requestId(), admitted.requestId());
    assertEquals(chunks.get(chunks.size() - 1).position(), stream.position());
    Assertions.assertThrows(NoSuchElementException.class, stream::next);
  }

  @Test
  void aStreamCanBeResumedByAnotherReader() {
    ChatStream stream = client.stream(turn("echo", "one two"));
    List<StreamItem> whole = all(stream);
    List<Chunk> chunks = chunks(whole);

    List<StreamItem> rest = all(client.resume(stream.requestId(), chunks.get(0).position()));
    List<StreamItem> again = all(client.resume(stream.requestId(), Position.BEGINNING));

    assertEquals(chunks.subList(1, chunks.size()), chunks(rest));
    assertEquals(chunks, chunks(again));
    assertEquals(whole.get(whole.size() - 1), rest.get(rest.size() - 1));
  }

  @Test
  void theReadersPlaceIsThatOfTheLastItemGiven() {
    ChatStream stream = client.stream(turn("echo", "one two"));
    stream.next();
    Chunk first = (Chunk) stream.next();

    stream.hasNext();

    assertEquals(first.position(), stream.position());
    stream.close();
    assertFalse(stream.hasNext());
  }

  @Test
  void aSubmittedTurnIsComeBackFor() {
    Turn turn = held(fresh());
    Admitted admitted = client.submit(turn);

    Optional<Reply> early = client.reply(turn.requestId(), Duration.ZERO);
    Optional<Reply> waited = client.reply(turn.requestId(), Duration.ofMillis(300));
    release(turn);
    Optional<Reply> reply = client.reply(turn.requestId(), LONG);

    assertEquals(new Admitted(turn.requestId(), turn.sessionId(), false), admitted);
    assertEquals(List.of(Optional.empty(), Optional.empty()), List.of(early, waited));
    assertEquals("holding done", reply.orElseThrow().text());
    assertEquals(reply, client.reply(turn.requestId(), Duration.ZERO));
  }

  @Test
  void aRunningTurnIsCancelled() {
    ChatStream stream = client.stream(held(fresh()));
    StreamItem item = stream.next();
    while (!(item instanceof Chunk)) {
      item = stream.next();
    }

    TurnState state = client.cancel(stream.requestId());
    TurnlineException streamed = refused(() -> all(stream));
    TurnlineException fetched = refused(() -> client.reply(stream.requestId(), Duration.ZERO));

    assertEquals(TurnState.TURN_STATE_RUNNING, state);
    assertEquals(List.of("turn_cancelled", "turn_cancelled"), List.of(streamed.code(), fetched.code()));
    assertEquals(499, streamed.statusCode());
    assertEquals(TurnState.TURN_STATE_DONE, client.cancel(stream.requestId()));
  }

  @Test
  void interruptingACallLeavesItsTurnRunning() throws InterruptedException {
    Turn turn = held(fresh());
    AtomicReference<TurnlineException> told = new AtomicReference<>();
    Thread caller = new Thread(() -> told.set(refused(() -> client.chat(turn))));
    caller.start();
    awaitAdmitted(client, turn.requestId());

    caller.interrupt();
    caller.join();
    release(turn);

    assertEquals("cancelled", told.get().code());
    assertEquals("holding done", client.reply(turn.requestId(), LONG).orElseThrow().text());
  }
}
