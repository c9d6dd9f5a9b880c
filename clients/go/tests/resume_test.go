package tests

import (
	"slices"
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
	all, err := read(
		client(t, proxy.address(), turnline.Options{}).Stream(soon(t), turn(t, "hold", string(gate))),
		func(chunk turnline.Chunk) {
			if chunk.Text() == "holding " {
				proxy.refuse()
				gate.open(t)
				time.AfterFunc(300*time.Millisecond, proxy.heal)
			}
		},
	)

	if err != nil || all.text != "holding done" {
		t.Fatal(all, err)
	}
}

func TestAReaderWhoIsSentAwayForTheSilenceComesBack(t *testing.T) {
	gate := newGate(t)
	all, err := read(
		strict(t, env(t, "TURNLINE_TOKEN"), 2).Stream(soon(t), turn(t, "hold", string(gate))),
		func(chunk turnline.Chunk) {
			if chunk.Text() == "holding " {
				time.AfterFunc(3500*time.Millisecond, func() { gate.open(t) })
			}
		},
	)

	if err != nil || all.text != "holding done" {
		t.Fatal(all, err)
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
	go func() {
		admitted(t, open(t), held.RequestID)
		proxy.cut()
		gate.open(t)
	}()
	end, err := client(t, proxy.address(), turnline.Options{}).Chat(soon(t), held)
	if err != nil || end.GetReply().GetResult() != "holding done" {
		t.Fatal(end, err)
	}

	counted, err := open(t).Chat(soon(t), turn(t, "counter", "how many"))
	if err != nil || counted.GetReply().GetResult() != "1" {
		t.Fatal(counted, err)
	}
}
