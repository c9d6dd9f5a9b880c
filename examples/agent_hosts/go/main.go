// A host of one agent, written in Go: it streams the words of a prompt in capitals.
//
// The protocol is proto/turnline/v1/agent_service.proto; its Go code is made by ../build.py.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	pb "turnline.dev/examples/host/turnline/v1"
)

const (
	agentName = "shout"
	// Runners give up on a host that says nothing for 15 seconds.
	heartbeat = 5 * time.Second
	drain     = 5 * time.Second
)

type host struct {
	pb.UnimplementedAgentServiceServer
}

// Run answers one turn.  The runner that asked may cancel it at any time: the context ends then.
func (*host) Run(request *pb.RunRequest, stream grpc.ServerStreamingServer[pb.RunResponse]) error {
	if request.GetAgent() != agentName {
		return status.Error(codes.NotFound, "no agent of this name")
	}
	ctx := stream.Context()
	said := make(chan *pb.RunResponse)
	go func() {
		defer close(said)
		shout(ctx, request.GetTurn(), said)
	}()
	silence := time.NewTicker(heartbeat)
	defer silence.Stop()
	for {
		var response *pb.RunResponse
		select {
		case next, more := <-said:
			if !more {
				return ctx.Err()
			}
			response = next
			silence.Reset(heartbeat)
		case <-silence.C:
			response = &pb.RunResponse{Item: &pb.RunResponse_Heartbeat{Heartbeat: &pb.Heartbeat{}}}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// ListAgents says which agents this host has.
func (*host) ListAgents(context.Context, *pb.ListAgentsRequest) (*pb.ListAgentsResponse, error) {
	shout := &pb.AgentInfo{Name: agentName, Description: "Says it in capitals."}
	return &pb.ListAgentsResponse{Agents: []*pb.AgentInfo{shout}}, nil
}

// shout sends what the agent says: one event a word, then its reply or why there is none.
func shout(ctx context.Context, turn *pb.Turn, said chan<- *pb.RunResponse) {
	prompt := turn.GetRequest().GetPrompt()
	if strings.Contains(prompt, "forbidden") {
		failure := &pb.AgentFailure{Message: "That is not said here", StatusCode: 403}
		say(ctx, said, &pb.RunResponse{Item: &pb.RunResponse_Failure{Failure: failure}})
		return
	}
	var text strings.Builder
	for number, word := range strings.Fields(prompt) {
		if number > 0 {
			word = " " + word
		}
		word = strings.ToUpper(word)
		text.WriteString(word)
		event := &pb.ChatEvent{Type: pb.EventType_EVENT_TYPE_TEXT_DELTA, Content: word}
		if !say(ctx, said, &pb.RunResponse{Item: &pb.RunResponse_Event{Event: event}}) {
			return
		}
		if word == " HANG" && turn.GetAttempt() == 1 {
			<-ctx.Done() // something that hangs, and works when it is tried again
			fmt.Printf("left: %s\n", prompt)
			return
		}
	}
	// What is in the state is saved with the reply in one step, or not at all.
	turns := turn.GetState().GetFields()["turns"].GetNumberValue() + 1
	counted := &structpb.Struct{Fields: map[string]*structpb.Value{
		"turns": structpb.NewNumberValue(turns),
	}}
	reply := &pb.AgentReply{Text: text.String(), Extra: counted, State: counted}
	say(ctx, said, &pb.RunResponse{Item: &pb.RunResponse_Reply{Reply: reply}})
}

// say returns false if nobody listens any more.
func say(ctx context.Context, said chan<- *pb.RunResponse, response *pb.RunResponse) bool {
	select {
	case said <- response:
		return true
	case <-ctx.Done():
		return false
	}
}

func main() {
	address := flag.String("listen", "127.0.0.1:9000", "where runners reach this host")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterAgentServiceServer(server, &host{})
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() {
		<-told.Done()
		time.AfterFunc(drain, server.Stop)
		server.GracefulStop()
	}()
	fmt.Printf("listening on %s\n", listener.Addr())
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
