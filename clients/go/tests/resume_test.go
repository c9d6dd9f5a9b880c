package tests

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	turnline "turnline.dev/client"
)

func TestAStreamThatIsCutGoesOnBehindTheLastEventSeen(t *testing.T) {
	proxy, gate := newProxy(t, env(t, "TURNLINE_OPEN")), newGate(t)
	all, err := read(
		client(t, proxy.address(), turnline.Options{}).Stream(soon(t), turn(t, "hold", string(gate))),
		func(chunk turnline.Chunk) {
			if chunk.Text() == "holding " {
				proxy.cut()
				gate.open(t)
			}
		},
	)

	want := []string{"admitted", "holding ", "done", "end"}
	if err != nil || !slices.Equal(all.kinds, want) || all.text != "holding done" {
		t.Fatal(all, err)
	}
	if proxy.connections() < 2 {
		t.Fatal("the stream was never cut")
	}
}

func TestAStreamWaitsForAServerThatIsAwayForAWhile(t *testing.T) {
	proxy, gate := newProxy(t, env(t, "TURNLINE_OPEN")), newGate(t)
	options := turnline.Options{MaxTries: 1000, Backoff: 20 * time.Millisecond}
	all, err := read(
		client(t, proxy.address(), options).Stream(soon(t), turn(t, "hold", string(gate))),
		func(chunk turnline.Chunk) {
			if chunk.Text() == "holding " {
				proxy.refuse()
				gate.open(t)
				go func() {
					<-proxy.refused
					proxy.heal()
				}()
			}
		},
	)

	if err != nil || all.text != "holding done" {
		t.Fatal(all, err)
	}
}

func TestAStreamGoesOnBehindTheLastPieceAfterEachCut(t *testing.T) {
	proxy, gate := newProxy(t, env(t, "TURNLINE_OPEN")), newGate(t)
	all, err := read(
		client(t, proxy.address(), turnline.Options{}).Stream(soon(t), turn(t, "steps", string(gate))),
		func(chunk turnline.Chunk) {
			step, err := strconv.Atoi(strings.TrimSpace(chunk.Text()))
			if err != nil {
				t.Error(err)
			}
			// What comes next is not made before the cut, so it comes over another connection.
			proxy.cut()
			gate.step(step + 1).open(t)
		},
	)

	want := []string{"admitted", "1 ", "2 ", "3 ", "4 ", "5 ", "end"}
	if err != nil || !slices.Equal(all.kinds, want) || proxy.connections() < 5 {
		t.Fatal(all, err, proxy.connections())
	}
}

func TestTriesOfAStreamAreBounded(t *testing.T) {
	proxy, gate := newProxy(t, env(t, "TURNLINE_OPEN")), newGate(t)
	options := turnline.Options{MaxTries: 3, Backoff: time.Millisecond}
	all, err := read(
		client(t, proxy.address(), options).Stream(soon(t), turn(t, "hold", string(gate))),
		func(turnline.Chunk) { proxy.refuse() },
	)

	if refused(t, err).Code != "unavailable" || all.text != "holding " {
		t.Fatal(all, err)
	}
}

func TestAChatThatIsCutComesBackForTheSameTurn(t *testing.T) {
	proxy, gate := newProxy(t, env(t, "TURNLINE_OPEN")), newGate(t)
	held := turn(t, "hold", string(gate))
	held.RequestID = t.Name()
	ctx, far := soon(t), client(t, proxy.address(), turnline.Options{})
	waiting := make(chan answer, 1)
	go func() {
		end, err := far.Chat(ctx, held)
		waiting <- answer{end, err}
	}()
	admitted(t, open(t), held.RequestID)
	proxy.cut()
	gate.open(t)
	if got := <-waiting; got.err != nil || got.end.GetReply().GetResult() != "holding done" {
		t.Fatal(got)
	}

	counted, err := open(t).Chat(soon(t), turn(t, "turns", "how many"))
	if err != nil || counted.GetReply().GetResult() != "1" {
		t.Fatal(counted, err)
	}
}
