package tests

import (
	"slices"
	"testing"

	turnline "turnline.dev/client"
	turnlinev1 "turnline.dev/client/turnline/v1"
)

func TestChatWaitsForTheAnswerAndASessionHasItsHistory(t *testing.T) {
	client := open(t)
	var said []string
	for range 2 {
		end, err := client.Chat(soon(t), turn(t, "turns", "how many"))
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, end.GetReply().GetResult())
	}

	if !slices.Equal(said, []string{"0", "1"}) {
		t.Fatalf("said %q", said)
	}
}

func TestATurnThatIsNamedIsRunOnce(t *testing.T) {
	client, named := open(t), turn(t, "turns", "how many")
	named.RequestID = t.Name()
	for range 2 {
		end, err := client.Chat(soon(t), named)
		if err != nil || end.GetReply().GetResult() != "0" || end.GetRequestId() != t.Name() {
			t.Fatal(end, err)
		}
	}
}

func TestASubmittedTurnIsPendingUntilItHasAnEnd(t *testing.T) {
	client, gate := open(t), newGate(t)
	submitted, err := client.Submit(soon(t), turn(t, "hold", string(gate)))
	if err != nil || submitted.GetKnown() || submitted.GetSessionId() != t.Name() {
		t.Fatal(submitted, err)
	}

	id := submitted.GetRequestId()
	if pending, err := client.Reply(soon(t), id, 0); pending != nil || err != nil {
		t.Fatal(pending, err)
	}
	gate.open(t)
	end, err := client.Reply(soon(t), id, within)
	if err != nil || end.GetReply().GetResult() != "holding done" || end.GetSessionId() != t.Name() {
		t.Fatal(end, err)
	}
}

func TestAStreamBringsItsEventsInOrder(t *testing.T) {
	all, err := read(open(t).Stream(soon(t), turn(t, "echo", "one two")), nothing)

	if err != nil || !slices.Equal(all.kinds, []string{"admitted", "one ", "two ", "end"}) {
		t.Fatal(all, err)
	}
	if all.text != "one two " || all.end.GetReply().GetResult() != all.text {
		t.Fatal(all)
	}
}

func TestARestartVoidsWhatWasStreamed(t *testing.T) {
	all, err := read(open(t).Stream(soon(t), turn(t, "flaky", "go")), nothing)

	want := []string{"admitted", "lost ", "restart", "kept", "end"}
	if err != nil || !slices.Equal(all.kinds, want) || all.text != "kept" {
		t.Fatal(all, err)
	}
}

func TestAStreamIsResumedBehindAPlace(t *testing.T) {
	client := open(t)
	var places []*turnlinev1.Position
	whole, err := read(
		client.Stream(soon(t), turn(t, "echo", "one two three")),
		func(chunk turnline.Chunk) { places = append(places, chunk.Position()) },
	)
	if err != nil {
		t.Fatal(err)
	}

	rest, err := read(client.Resume(soon(t), whole.id, places[0]), nothing)
	if err != nil || rest.text != "two three " {
		t.Fatal(rest, err)
	}
	again, err := read(client.Resume(soon(t), whole.id, nil), nothing)
	if err != nil || again.text != whole.text {
		t.Fatal(again, err)
	}
}

func TestAReaderWhoLeavesDoesNotEndTheTurn(t *testing.T) {
	client, gate := open(t), newGate(t)
	id := admittedByStream(t, client, turn(t, "hold", string(gate)))

	gate.open(t)
	end, err := client.Reply(soon(t), id, within)
	if err != nil || end.GetReply().GetResult() != "holding done" {
		t.Fatal(end, err)
	}
}

func TestARunningTurnIsCancelled(t *testing.T) {
	client, gate := open(t), newGate(t)
	held := turn(t, "hold", string(gate))
	held.RequestID = t.Name()
	var state turnlinev1.TurnState
	_, err := read(client.Stream(soon(t), held), func(turnline.Chunk) {
		var failed error
		if state, failed = client.Cancel(soon(t), held.RequestID); failed != nil {
			t.Error(failed)
		}
	})

	if code := refused(t, err).Code; code != "turn_cancelled" {
		t.Fatal(code)
	}
	after, err := client.Cancel(soon(t), held.RequestID)
	if err != nil || state != turnlinev1.TurnState_TURN_STATE_RUNNING || after != turnlinev1.TurnState_TURN_STATE_DONE {
		t.Fatal(state, after, err)
	}
}
