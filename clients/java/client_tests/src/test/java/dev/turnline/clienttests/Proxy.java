package dev.turnline.clienttests;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Passes bytes on to a server, until its connections are cut. */
final class Proxy implements AutoCloseable {
  private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private final String host;
  private final int port;
  private final Semaphore refused = new Semaphore(0);
  private volatile boolean refusing;
  private volatile int connections;

  Proxy(String target) throws IOException {
    host = target.substring(0, target.lastIndexOf(':'));
    port = Integer.parseInt(target.substring(target.lastIndexOf(':') + 1));
    start(this::accept);
  }

  /** How many there were. */
  int connections() {
    return connections;
  }

  String target() {
    return "127.0.0.1:" + listening.getLocalPort();
  }

  /** Resets every connection; new ones are taken. */
  void cut() {
    for (Socket socket : sockets) {
      end(socket);
    }
  }

  /** Resets every connection, and each new one at once, until told otherwise. */
  void refuse(boolean refusing) {
    this.refusing = refusing;
    if (refusing) {
      cut();
    }
  }

  /** Waits until a connection was refused. */
  void awaitRefused() throws InterruptedException {
    assertTrue(refused.tryAcquire(Rig.LONG.toSeconds(), TimeUnit.SECONDS));
  }

  @Override
  public void close() throws IOException {
    listening.close();
    refuse(true);
  }

  private void accept() {
    while (!listening.isClosed()) {
      try {
        Socket near = listening.accept();
        if (refusing) {
          end(near);
          refused.release();
          continue;
        }
        Socket far = new Socket(host, port);
        connections++;
        sockets.add(near);
        sockets.add(far);
        start(() -> pump(near, far));
        start(() -> pump(far, near));
      } catch (IOException closed) {
        // The loop says whether that was the end.
      }
    }
  }

  private void pump(Socket from, Socket to) {
    try {
      from.getInputStream().transferTo(to.getOutputStream());
      // What is on its way still arrives.
      to.close();
    } catch (IOException cut) {
      // Both ends go either way.
    }
    end(from);
    end(to);
  }

  private void end(Socket socket) {
    sockets.remove(socket);
    try {
      socket.setSoLinger(true, 0);
      socket.close();
    } catch (IOException ended) {
      // It had gone by itself.
    }
  }

  private static void start(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    thread.start();
  }
}
