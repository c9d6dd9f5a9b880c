import { EventEmitter, once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after } from "node:test";

/** Stands between a client and its server, and cuts connections when told to. */
export class Proxy {
  /** How many connections have been asked for. */
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((near) => this.#serve(near));
  readonly #refusals = new EventEmitter();
  #refusing = false;

  private constructor(readonly target: string) {}

  static async to(target: string): Promise<Proxy> {
    const made = new Proxy(target);
    made.#server.listen(0, "127.0.0.1");
    await once(made.#server, "listening");
    after(() => {
      made.#server.close();
      made.refuse();
    });
    return made;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resets every connection there is, or ends it as a server does that leaves; new ones are taken. */
  cut(how: "reset" | "end" = "reset"): void {
    for (const socket of this.#sockets) how === "reset" ? socket.resetAndDestroy() : socket.end();
  }

  /** Resets every connection, and each new one at once, until `heal`. */
  refuse(): void {
    this.#refusing = true;
    this.cut();
  }

  /** Comes when a connection is refused. */
  async refused(): Promise<void> {
    await once(this.#refusals, "refused");
  }

  heal(): void {
    this.#refusing = false;
  }

  #serve(near: Socket): void {
    this.connections++;
    near.on("error", () => {});
    if (this.#refusing) {
      near.resetAndDestroy();
      this.#refusals.emit("refused");
      return;
    }
    const [host, port] = this.target.split(":");
    const far = connect(Number(port), host);
    far.on("error", () => {});
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(one);
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
