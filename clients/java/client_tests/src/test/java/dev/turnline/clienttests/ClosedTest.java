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
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.turnline.client.ChatStream;
import dev.turnline.client.Position;
import dev.turnline.client.Retry;
import dev.turnline.client.StreamItem.Chunk;
import dev.turnline.client.Turn;
import dev.turnline.client.TurnlineClient;
import dev.turnline.client.TurnlineException;
import io.grpc.Status;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Clients that are closed, and tokens that everybody on the way could read. */
class ClosedTest {
  @Test
  void aCallThatRunsWhenItsClientIsClosedIsCancelledAndNotMadeAgain() throws Exception {
    Turn turn = held(fresh());
    try (Proxy proxy = new Proxy(env("TURNLINE_OPEN"));
        TurnlineClient near = Rig.open();
        TurnlineClient far = TurnlineClient.builder(proxy.target()).timeout(LONG).build()) {
      CompletableFuture<TurnlineException> call =
          CompletableFuture.supplyAsync(() -> refused(() -> far.chat(turn)));
      awaitAdmitted(near, turn.requestId());

      far.close();

      TurnlineException error = call.get(LONG.toSeconds(), TimeUnit.SECONDS);
      assertEquals(List.of("cancelled", turn.requestId()), List.of(error.code(), error.requestId()));
      assertFalse(error.retryable());
      assertEquals(1, proxy.connections());
      near.cancel(turn.requestId());
    }
  }

  @Test
  void aStreamThatRunsWhenItsClientIsClosedIsCancelled() throws IOException {
    Turn turn = held(fresh());
    try (Proxy proxy = new Proxy(env("TURNLINE_OPEN"));
        TurnlineClient near = Rig.open();
        TurnlineClient far = TurnlineClient.builder(proxy.target()).timeout(LONG).build()) {
      ChatStream stream = far.stream(turn);
      while (!(stream.next() instanceof Chunk)) {}

      far.close();

      assertEquals("cancelled", refused(() -> ModesTest.all(stream)).code());
      assertFalse(stream.hasNext());
      assertEquals(1, proxy.connections());
      near.cancel(turn.requestId());
    }
  }

  @Test
  void aClosedClientRefusesAndAsksNobody() {
    try (OwnServer server = new OwnServer(asked -> List.of(StatusesTest.PENDING))) {
      TurnlineClient client = server.client(Retry.DEFAULT);
      client.close();
      List<Executable> calls =
          List.of(
              () -> client.chat(turn("echo", "x")),
              () -> client.stream(turn("echo", "x")).next(),
              () -> client.submit(turn("echo", "x")),
              () -> client.reply("r1", Duration.ZERO),
              () -> client.resume("r1", Position.BEGINNING).next(),
              () -> client.cancel("r1"));

      for (Executable call : calls) {
        TurnlineException error = refused(call);
        assertEquals("cancelled", error.code());
        assertFalse(error.retryable());
      }
      assertEquals(0, server.asked());
    }
  }

  @Test
  void aClientThatIsClosedBetweenTwoTriesMakesNoOther() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    // Longer than the test takes, shorter than the call's deadline.
    Retry late = new Retry(5, LONG.dividedBy(2), LONG.dividedBy(2));
    try (OwnServer server =
        new OwnServer(
            number -> {
              asked.countDown();
              return List.of(Status.UNAVAILABLE.asRuntimeException());
            })) {
      TurnlineClient client = server.client(late);
      CompletableFuture<TurnlineException> call =
          CompletableFuture.supplyAsync(() -> refused(() -> client.submit(turn("echo", "x"))));
      assertTrue(asked.await(LONG.toSeconds(), TimeUnit.SECONDS));
      // The refusal is on its way; when it is there, the pause begins. Earlier shows nothing.
      Thread.sleep(500);

      client.close();

      // The shortest pause is a quarter of it.
      TurnlineException error = call.get(LONG.toMillis() / 4 - 500, TimeUnit.MILLISECONDS);
      assertEquals("cancelled", error.code());
      assertEquals(1, server.asked());
    }
  }

  @Test
  void aTokenIsNotSentElsewhereWithoutTlsUnlessThatIsAllowed() {
    for (String target :
        List.of(
            "example.org:443",
            "10.0.0.1:8001",
            "[2001:db8::1]:8001",
            "dns:///example.org:1",
            "127.0.0.1.example.org:1",
            "localhost.example.org:1")) {
      TurnlineClient.Builder builder = TurnlineClient.builder(target).token(() -> "t");

      String text = assertThrows(IllegalStateException.class, builder::build).getMessage();
      assertTrue(text.contains("allowPlaintextToken"));
      builder.allowPlaintextToken().build().close();
      TurnlineClient.builder(target).token(() -> "t").tls().build().close();
      TurnlineClient.builder(target).build().close();
    }
    for (String target :
        List.of("localhost:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "dns:///localhost:1")) {
      TurnlineClient.builder(target).token(() -> "t").build().close();
    }
  }
}
